import { randomUUID } from 'node:crypto';
import { isInputObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { MONEY_OUT } from '../../src/upstream/transactions.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { type Seen, startFront } from './faults/front.ts';

/** What names one sending, and not the payment. */
const OF_ONE_SENDING = new Set(['x-request-id']);

const PAY = `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) { __typename } }`;
const STATE = 'query ($key: String!) { payment(idempotencyKey: $key) { state } }';

/** Everything of a request that belongs to the payment: a header that is new counts by itself. */
const ofPayment = ({ method, path, headers, body }: Seen) => ({
  method,
  path,
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_ONE_SENDING.has(name))),
  body,
});

// The service knows a repeat by its key. What a repeat lacks, the service may do without: the money leaves, and not as it was ordered.
it.each(['node:sqlite', 'Redis'])(
  'money out leaves as it left first, whoever repeats it: its call, its caller, the gateway itself; over %s',
  async (store) => {
    await using cleanup = new AsyncDisposableStack();
    const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    cleanup.defer(() => sandbox.stop());
    let isLost = true;
    const front = cleanup.use(
      await startFront(sandbox.url, ({ path }, response) => {
        if (path !== MONEY_OUT || !isLost) return false;
        response.destroy();
        return true;
      }),
    );
    const redis = store === 'Redis' ? await startRedis() : undefined;
    if (redis !== undefined) cleanup.defer(() => redis.stop());
    const gateway = cleanup.use(
      await startGateway({
        sandbox,
        webhooks: false,
        config: {
          service: serviceFor(sandbox),
          upstreamUrl: front.url,
          operationTimeoutMs: 2_000,
          redisUrl: redis && new Secret(redis.url),
        },
      }),
    );
    const sent = () => front.changes.filter(({ path }) => path === MONEY_OUT);
    const caller = { authorization: `Bearer ${await callerToken()}` };
    const world = await control(sandbox, 'GET', '/sandbox');
    // Each field of the input is given, also one that may be left out: a record may keep it apart from the text of the request.
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.cardInstrumentIds[0],
      amount: '12.50',
      currency: 'MXN',
      description: 'Pago',
      externalReference: '7',
    };
    const type = buildSchema().getType('CreateMoneyOutInput');
    if (!isInputObjectType(type)) throw new Error('money out has an input');
    expect(Object.keys(input).toSorted()).toEqual(Object.keys(type.getFields()).toSorted());

    const counts: number[] = [];
    for (const _call of ['the first', 'the same again']) {
      const { data } = await gateway.query(PAY, { input }, caller);
      expect(data.paid).toEqual({ __typename: 'OutcomeUnknown' });
      counts.push(sent().length);
    }
    const [ofFirstCall = 0, ofBoth = 0] = counts;
    expect(ofFirstCall, 'requests of the first call').toBeGreaterThan(1);
    expect(ofBoth, 'requests of both calls').toBeGreaterThan(ofFirstCall);
    // Nobody calls any more.
    await until(() => sent().length > ofBoth);
    isLost = false;
    const told = await until(async () => {
      const { data } = await gateway.query(STATE, { key: input.idempotencyKey }, caller);
      return data.payment.state === 'DONE' && data.payment;
    });
    expect(told).toMatchObject({ state: 'DONE' });
    const [first, ...repeats] = sent().map(ofPayment);
    expect(first?.headers).toMatchObject({ 'idempotency-key': expect.any(String) });
    for (const repeat of repeats) expect(repeat).toEqual(first);
  },
);
