import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { Secret } from '../../../src/common/secret.ts';
import type { MoneyMutation } from '../../../src/money/intent.ts';
import { type AlteredService, startAltered } from '../../helpers/altered-service.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import {
  documentOf,
  MUTATIONS,
  movementsOf,
  type Payable,
  payable,
} from '../../scenarios/faults/payments.ts';

const OTHER_ID = '5d3e7f0a-6d0b-4d7c-9a3e-0d1c2b3a4f5e';

/** An answer as the service gave it, and the payment that it answers. */
interface Given {
  readonly body: Readonly<Record<string, unknown>>;
  readonly payment: Payable;
  /** The transaction of a payment that was done before, under another key. */
  readonly earlierId: string;
}

/** What is wrong with an answer: the fields that are named to the operator, what comes instead, and for which payments it is wrong. */
interface Alteration {
  readonly what: string;
  readonly fields: readonly string[];
  readonly alter: (given: Given) => object;
  readonly of?: readonly MoneyMutation[];
}

const without = (body: Given['body'], field: string): object =>
  Object.fromEntries(Object.entries(body).filter(([name]) => name !== field));

const ALTERATIONS: readonly Alteration[] = [
  { what: 'another amount', fields: ['amount'], alter: ({ body }) => ({ ...body, amount: '500.00' }) },
  { what: 'another currency', fields: ['currency'], alter: ({ body }) => ({ ...body, currency: 'USD' }) },
  { what: 'another client', fields: ['clientId'], alter: ({ body }) => ({ ...body, clientId: OTHER_ID }) },
  {
    what: 'another kind',
    fields: ['subCategory'],
    alter: ({ body }) => ({ ...body, subCategory: 'INT_CREDIT' }),
  },
  {
    what: 'another category',
    fields: ['category'],
    alter: ({ body }) => ({
      ...body,
      category: body['category'] === 'INTER_TRANS' ? 'DEBIT_TRANS' : 'INTER_TRANS',
    }),
  },
  {
    what: 'another source',
    fields: ['sourceInstrument'],
    alter: ({ body }) => ({ ...body, sourceInstrument: { id: OTHER_ID } }),
    of: ['createMoneyOut', 'createInternalTransaction', 'createPennyValidation'],
  },
  {
    what: 'another destination',
    fields: ['destinationInstrument'],
    alter: ({ body }) => ({ ...body, destinationInstrument: { id: OTHER_ID } }),
    of: ['createMoneyOut', 'createInternalTransaction', 'createPennyValidation'],
  },
  {
    what: 'the refund of another credit',
    fields: ['originalTransactionId'],
    alter: ({ body }) => ({ ...body, originalTransactionId: OTHER_ID }),
    of: ['refundTransaction'],
  },
  {
    what: 'the credit itself',
    fields: ['id'],
    alter: ({ body, payment }) => ({ ...body, id: payment.input['transactionId'] }),
    of: ['refundTransaction'],
  },
  {
    what: 'the transaction of another payment',
    fields: ['id'],
    alter: ({ body, earlierId }) => ({ ...body, id: earlierId.toUpperCase() }),
  },
  { what: 'no id', fields: ['id'], alter: ({ body }) => without(body, 'id') },
  { what: 'an empty id', fields: ['id'], alter: ({ body }) => ({ ...body, id: '' }) },
  ...['REJECTED', 'FAILED', 'CANCELLED', 'RECHAZADA'].map((transactionStatus) => ({
    what: `the status ${transactionStatus}`,
    fields: ['transactionStatus'],
    alter: ({ body }: Given) => ({ ...body, transactionStatus }),
  })),
];

describe.each([
  ['node:sqlite', 'passthrough'],
  ['Redis', 'service'],
] as const)('answers that are not those to their orders, over %s, in %s mode', (store, mode) => {
  let cleanup: AsyncDisposableStack;
  let sandbox: Sandbox;
  let service: AlteredService;
  let gateway: RunningGateway;
  let headers: Readonly<Record<string, string>>;
  /** What becomes of the answers to payments, by the payment's description. */
  const altering = new Map<string, (body: Given['body']) => object>();

  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const choices = { repeatedRefund: 'performed' } as const;
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
    cleanup.defer(() => sandbox.stop());
    service = cleanup.use(await startAltered(sandbox.url));
    service.alter = ({ method }, { status, body }) => {
      if (method !== 'POST' || status >= 300) return undefined;
      // The sandbox answers a payment with an object.
      const given = body as Given['body'];
      const alter = altering.get(String(given['description']));
      return alter && { body: alter(given) };
    };
    const redisUrl = store === 'Redis' ? new Secret(cleanup.use(await startRedis()).url) : undefined;
    const isService = mode === 'service';
    headers = { authorization: `Bearer ${isService ? await callerToken() : sandbox.accessToken}` };
    gateway = cleanup.use(
      await startGateway({
        sandbox,
        webhooks: false,
        config: {
          upstreamUrl: service.url,
          redisUrl,
          service: isService ? serviceFor(sandbox) : undefined,
          ...PATIENT,
        },
      }),
    );
  });
  afterAll(() => cleanup.disposeAsync());

  const pay = async ({ mutation, input }: Payable) => {
    const { data, errors } = await gateway.query(documentOf(mutation), { input }, headers);
    expect(errors).toBeUndefined();
    return data.result;
  };
  const alarms = (mutation: MoneyMutation): { readonly fields: readonly string[] }[] =>
    gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ level, message }) => level === 'error' && message.includes('not the answer to its order'))
      .filter((line) => line.mutation === mutation && /^[\w-]{43}$/.test(line.paymentId));
  const counted = async (mutation: MoneyMutation): Promise<number> => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    const name = `pasarela_payment_answer_mismatches_total{mutation="${mutation}"}`;
    const line = metrics.split('\n').find((one) => one.startsWith(name));
    return Number(line?.slice(name.length));
  };

  // All at once: an order for money out asks a few times more, for seconds.
  it.each(MUTATIONS)(
    '%s moves once, is told as unknown each time, and the operator is told why',
    async (mutation) => {
      const alterations = ALTERATIONS.filter(({ of }) => of?.includes(mutation) ?? true);
      const earlier = await pay(await payable(sandbox, mutation, `${MUTATIONS.indexOf(mutation)} before`));
      const earlierId: string = earlier.moved.id;
      await Promise.all(
        alterations.map(async ({ what, alter }) => {
          const tag = `${MUTATIONS.indexOf(mutation)} ${what}`;
          const payment = await payable(sandbox, mutation, tag);
          altering.set(tag, (body) => alter({ body, payment, earlierId }));
          for (let time = 0; time < 2; time += 1) {
            expect(await pay(payment), what).toMatchObject({
              __typename: 'OutcomeUnknown',
              reason: 'ANSWER_DOES_NOT_MATCH',
              // The service performs money out once for its key.
              safeToRetry: mutation === 'createMoneyOut',
            });
            expect(await movementsOf(sandbox, tag), what).toHaveLength(1);
          }
          altering.delete(tag);
          const after = await pay(payment);
          const [moved] = await movementsOf(sandbox, tag);
          if (mutation === 'createMoneyOut')
            expect(after, what).toMatchObject({ moved: { id: moved?.transactionId } });
          else expect(after, what).toMatchObject({ reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: false });
          expect(await movementsOf(sandbox, tag), what).toHaveLength(1);
        }),
      );
      const told = alarms(mutation).map(({ fields }) => fields);
      for (const { what, fields } of alterations) {
        expect(told, what).toContainEqual(expect.arrayContaining([...fields]));
      }
      expect(await counted(mutation)).toBe(told.length);
      expect(told.length).toBeGreaterThanOrEqual(alterations.length);
    },
  );

  it.each(MUTATIONS)(
    '%s is told as done again where the answer was longer than a megabyte',
    async (mutation) => {
      const payment = await payable(sandbox, mutation, `${MUTATIONS.indexOf(mutation)} long`);
      altering.set(payment.tag, (body) => ({ ...body, note: 'ñ'.repeat(600_000) }));
      const { moved } = await pay(payment);
      altering.clear();
      expect(await pay(payment)).toMatchObject({ replayed: true, moved });
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
    },
  );

  it('are those to their orders where they write the same in another way', async () => {
    const payment = await payable(sandbox, 'createMoneyOut', 'written otherwise');
    altering.set(payment.tag, (body) => ({
      ...body,
      amount: String(Number(body['amount'])),
      clientId: String(body['clientId']).toUpperCase(),
      transactionStatus: 'A_STATUS_OF_TOMORROW',
    }));
    expect(await pay(payment)).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
    altering.clear();
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });
});
