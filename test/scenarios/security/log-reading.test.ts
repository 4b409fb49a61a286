import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import type { ServerConfig } from '../../../src/app/server-config.ts';
import { silentLogger } from '../../../src/common/logger.ts';
import { Secret } from '../../../src/common/secret.ts';
import type { EventType } from '../../../src/events/log.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { eventNames } from '../../../src/resolvers/events/event-names.ts';
import { moneyIn } from '../../helpers/events.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PatientLog } from '../../helpers/patient-log.ts';
import { type RedisServer, startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';

const CREDITS = 5_200;
const RECEIPTS = 700;
/** Long ago, so that no receipt waits for a transaction that is about to appear. */
const RECEIVED_AT = '2026-03-02T10:00:00.000Z';

const eventOf = (type: EventType) => {
  const id = randomUUID();
  const body = { id: randomUUID(), owner_id: randomUUID(), amount: '1.00', status: 'DELAYED' };
  const payload = JSON.stringify({ id_msg: id, msg_name: type, body });
  return { ...moneyIn({ id, type, payload }), receivedAt: RECEIVED_AT };
};

const aliases = (args: string) =>
  `{ ${Array.from({ length: 30 }, (_, index) => `a${index}: events(${args}) { nodes { id } pageInfo { hasNextPage endCursor } }`).join(' ')} }`;

const codesOf = ({ errors = [] }: GraphQLAnswer) => [
  ...new Set(errors.map(({ extensions }) => extensions['code'])),
];

describe.each(['SQLite', 'Redis'])('one operation over a log of thousands of others, in %s', (store) => {
  let redis: RedisServer | undefined;
  let dataDir: string;
  let sandbox: Sandbox;
  let gateway: RunningGateway;
  let tokens: { readonly whole: string; readonly narrowed: string; readonly other: string };

  /** Fills the log before a gateway opens it. */
  const open = async (): Promise<Partial<ServerConfig>> => {
    const redisUrl = redis === undefined ? undefined : new Secret(redis.url);
    return { dataDir, redisUrl, service: serviceFor(sandbox), eventsRetention: 100_000 };
  };

  beforeAll(async () => {
    redis = store === 'Redis' ? await startRedis() : undefined;
    dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reading-'));
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    const log = new PatientLog(
      await openEventLog({
        redisUrl: redis?.url,
        dataDir,
        retention: 100_000,
        names: eventNames,
        logger: silentLogger,
      }),
    );
    const types: EventType[] = [...Array(CREDITS).fill('MONEY_IN'), ...Array(RECEIPTS).fill('CEP')];
    for (let index = 0; index < types.length; index += 100) {
      const some = types.slice(index, index + 100);
      await Promise.all(some.map((type) => log.append(sandbox.clientId, eventOf(type))));
    }
    await log.stop();
    gateway = await startGateway({ sandbox, webhooks: false, config: await open() });
    const { customerIds } = await control(sandbox, 'GET', '/sandbox');
    tokens = {
      whole: await callerToken({ sub: 'one' }),
      narrowed: await callerToken({ sub: 'two', customer_id: customerIds[0] }),
      other: await callerToken({ sub: 'three' }),
    };
    for (const token of Object.values(tokens)) await ask('{ client { id } }', token);
  });

  afterAll(async () => {
    await gateway.stop();
    await sandbox.stop();
    await redis?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** Asks again where the log could not be read in time, as may happen beside other work. */
  const ask = (document: string, token: string, before = async () => {}) =>
    until(async () => {
      await before();
      const answer = await gateway.query(document, {}, { authorization: `Bearer ${token}` });
      return !codesOf(answer).includes('STORE_UNAVAILABLE') && answer;
    });

  const forget = () => control(sandbox, 'DELETE', '/sandbox/requests');

  it('looks through so many events, whatever its fields, and serves others in between', async () => {
    const order: string[] = [];
    const large = ask(aliases('types: [STATUS_UPDATE], first: 1'), tokens.whole).then((answer) => {
      order.push('large');
      return answer;
    });
    for (let time = 0; time < 3; time += 1) {
      await ask('{ client { id } }', tokens.other).then(() => order.push('other'));
    }
    const answer = await large;
    expect(order.indexOf('other')).toBeLessThan(order.indexOf('large'));
    expect(['', 'TOO_COMPLEX']).toContain(codesOf(answer).join());
    const cursors = await cursorsOfAll();
    const looked = Object.values<GraphQLAnswer['data']>(answer.data)
      .filter(Boolean)
      .map(({ nodes, pageInfo }) => {
        expect([nodes, pageInfo.hasNextPage]).toEqual([[], true]);
        return cursors.indexOf(pageInfo.endCursor) + 1;
      });
    expect(Math.min(...looked)).toBeGreaterThan(0);
    const sum = looked.reduce((all, one) => all + one, 0);
    expect(sum).toBeLessThanOrEqual(10_000);
  });

  async function cursorsOfAll(): Promise<readonly string[]> {
    const cursors: string[] = [];
    for (let after: string | null = null; ; ) {
      const from: string = after === null ? '' : `, after: "${after}"`;
      const document = `{ events(first: 100${from}) { edges { cursor } pageInfo { hasNextPage endCursor } } }`;
      const { events } = (await ask(document, tokens.whole)).data;
      cursors.push(...events.edges.map(({ cursor }: { readonly cursor: string }) => cursor));
      if (!events.pageInfo.hasNextPage) return cursors;
      after = events.pageInfo.endCursor;
    }
  }

  it('asks for so many owners of receipts, remembers them, and answers a narrowed caller once all are known', async () => {
    const narrowed = aliases('first: 1');
    let answers = 0;
    for (let time = 0; answers === 0; time += 1) {
      expect(time).toBeLessThan(6);
      const { data, errors } = await ask(narrowed, tokens.narrowed, forget);
      const { total } = await control(sandbox, 'GET', '/sandbox/requests');
      expect(total).toBeLessThanOrEqual(260);
      expect(codesOf({ errors } as GraphQLAnswer)).toEqual(['TOO_COMPLEX']);
      const told = Object.values<GraphQLAnswer['data']>(data).filter(Boolean);
      for (const page of told) {
        expect(page).toEqual({ nodes: [], pageInfo: { hasNextPage: false, endCursor: null } });
      }
      answers = told.length;
    }
    // As many fields as may read the whole log.
    expect(answers).toBe(4);
  });

  it('ends by its deadline, with a documented error and few REST calls', async () => {
    await gateway.stop();
    gateway = await startGateway({
      sandbox,
      webhooks: false,
      // Longer than a slow machine takes to find out who is calling, with a new token of the gateway's own.
      config: { ...(await open()), operationTimeoutMs: 5_000 },
    });
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/transactions/*' },
      fault: { delayMs: 1_000 },
    });
    for (let time = 0; time < 2; time += 1) {
      const { errors = [] } = await ask('{ events(first: 1) { nodes { id } } }', tokens.narrowed, forget);
      expect(errors).toMatchObject([
        { message: expect.stringContaining('takes longer'), extensions: { code: 'TOO_COMPLEX' } },
      ]);
      const { total } = await control(sandbox, 'GET', '/sandbox/requests');
      expect(total).toBeLessThan(100);
    }
    await control(sandbox, 'DELETE', '/sandbox/faults');
  });
});
