import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { silentLogger } from '../../../src/common/logger.ts';
import { Secret } from '../../../src/common/secret.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { eventNames } from '../../../src/resolvers/events/event-names.ts';
import { moneyIn } from '../../helpers/events.ts';
import { control, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { inject, requestsOf } from '../../scenarios/faults/payments.ts';

const TRANSACTION = 'GET /v1/clients/{clientId}/transactions/{transactionId}';
const RECEIPT = 'query ($id: ID!) { events(transactionId: $id, types: [CEP]) { nodes { id } } }';

it.each(['SQLite', 'Redis'])(
  'whose a receipt is, is found out for one customer while another one waits, over %s',
  async (store) => {
    await using cleanup = new AsyncDisposableStack();
    const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    cleanup.defer(() => sandbox.stop());
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-receipts-'));
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
    const redis = store === 'Redis' ? cleanup.use(await startRedis()) : undefined;
    const opened = {
      redisUrl: redis?.url,
      dataDir,
      retention: 1_000,
      names: eventNames,
      logger: silentLogger,
    };
    const log = await openEventLog(opened);
    const [slow, quick] = [randomUUID(), randomUUID()];
    for (const transactionId of [slow, quick]) {
      const payload = JSON.stringify({
        id_msg: randomUUID(),
        msg_name: 'CEP',
        body: { id: transactionId, status: 'DELAYED' },
      });
      const event = moneyIn({ id: randomUUID(), type: 'CEP', payload });
      // Long ago, so that it waits for no transaction that is about to appear.
      await log.append(sandbox.clientId, { ...event, receivedAt: '2026-03-02T10:00:00.000Z' });
    }
    await log.stop();
    const gateway = cleanup.use(
      await startGateway({
        sandbox,
        webhooks: false,
        config: {
          dataDir,
          redisUrl: redis && new Secret(redis.url),
          service: serviceFor(sandbox),
          upstreamCallsPerCaller: 1,
          upstreamTimeoutMs: 120_000,
          operationTimeoutMs: 120_000,
        },
      }),
    );
    const { customerIds } = await control(sandbox, 'GET', '/sandbox');
    const left = new AbortController();
    const ask = async (customer: string, id: string) => {
      const authorization = `Bearer ${await callerToken({ sub: customer, customer_id: customer })}`;
      return sendQuery(gateway.graphql, RECEIPT, { id }, { authorization }, left.signal);
    };
    await control(sandbox, 'DELETE', '/sandbox/requests');
    await inject(
      sandbox,
      { method: 'GET', path: `/v1/clients/${sandbox.clientId}/transactions/${slow}` },
      'hang',
      1,
    );
    let isWaiting = true;
    const waiting = ask(customerIds[0], slow)
      .catch(() => undefined)
      .finally(() => {
        isWaiting = false;
      });
    await until(async () => (await requestsOf(sandbox, TRANSACTION)) === 1);
    const { data, errors } = await ask(customerIds[1], quick);
    expect(errors).toBeUndefined();
    expect(data.events.nodes).toEqual([]);
    expect(isWaiting).toBe(true);
    left.abort();
    await waiting;
  },
);
