import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { MoneyOrder } from '../../src/money/call.ts';
import { NOTHING_MORE } from '../../src/money/unknown-result.ts';
import type { Context } from '../../src/operation/context.ts';
import { createCustomerPrivateAccount, createPrivateAccount } from '../../src/resolvers/account.ts';
import { registerInstrument } from '../../src/resolvers/instrument-registration.ts';
import {
  createInternalTransaction,
  createMoneyOut,
  createPennyValidation,
} from '../../src/resolvers/payments/paying.ts';
import { refundTransaction } from '../../src/resolvers/payments/refund.ts';
import {
  createLegacyWebhook,
  createWebhook,
  deleteWebhook,
  updateWebhook,
} from '../../src/resolvers/webhook.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import type { Attempt } from '../../src/upstream/call/http.ts';
import { customerScope } from '../../src/upstream/customer-scope.ts';
import { type OwnershipReads, scopeChanges } from '../../src/upstream/session/scoped-changes.ts';
import { CLIENT_ID } from '../helpers/http-stub.ts';
import { KEYLESS_CHANGES } from '../helpers/keyless-changes.ts';

const ID = randomUUID();
const CUSTOMER: string = randomUUID();
/** Ids by which a change can name what belongs to somebody, in the possession of one customer. Each input takes them from here. */
const OWN = {
  customerId: CUSTOMER,
  ownerId: CUSTOMER,
  sourceInstrumentId: randomUUID() as string,
  destinationInstrumentId: randomUUID() as string,
  transactionId: randomUUID() as string,
};
type Named = typeof OWN;

const ACCOUNT = { bankId: ID, clientBankAdapterId: ID };
const CARD = { destinationBankId: ID, cardNumber: '4111111111111111', holderName: 'h' };
const RECEIVER = { sourceBankId: ID, alias: 'a', rfc: 'ND', receiver: { debitCard: CARD } };
const WEBHOOK = { type: 'CEP', url: 'https://example.mx/hook' } as const;

type Change = readonly [name: string, make: (context: Context, named: Named) => Promise<unknown>];
const CHANGES: readonly Change[] = [
  [
    'createPrivateAccount',
    (context, { ownerId }) => createPrivateAccount({ ...ACCOUNT, ownerId, accountId: ID }, context),
  ],
  [
    'createCustomerPrivateAccount',
    (context, { customerId, ownerId }) =>
      createCustomerPrivateAccount({ ...ACCOUNT, customerId, ownerId }, context),
  ],
  [
    'registerInstrument',
    (context, { customerId }) => registerInstrument({ ...RECEIVER, customerId }, context),
  ],
  ['createWebhook', (context) => createWebhook(WEBHOOK, context)],
  ['createLegacyWebhook', (context) => createLegacyWebhook(WEBHOOK, context)],
  ['updateWebhook', (context) => updateWebhook({ id: ID, status: 'INACTIVE' }, context)],
  ['deleteWebhook', (context) => deleteWebhook(ID, context)],
];

const LOST: Attempt = {
  kind: 'failed',
  error: new UpstreamError('UPSTREAM_UNAVAILABLE', 'It broke.', { dispatched: true }),
};
const REFUSED: Attempt = {
  kind: 'answered',
  status: 404,
  body: undefined,
  text: '',
  retryAfterMs: undefined,
};

/** As much of a context as a change asks for. */
const contextOf = (rest: object, forget: () => void) =>
  ({
    identity: { caller: { clientId: CLIENT_ID } },
    reads: { session: { rest, clientId: CLIENT_ID }, forget, forgetLists: forget },
    services: {
      ingress: {
        target: () => undefined,
        token: () => undefined,
        isMasked: () => false,
        isOwn: () => false,
      },
    },
  }) as unknown as Context;

it.each(CHANGES)(
  'what was read until %s is answered is forgotten then, whatever the answer is',
  async (_name, make) => {
    for (const attempt of [LOST, REFUSED]) {
      const seen: string[] = [];
      const forget = () => void seen.push('forgotten');
      const rest = {
        clientId: CLIENT_ID,
        async send() {
          seen.push('sent');
          await Promise.resolve();
          seen.push('answered');
          return attempt;
        },
      };
      await expect(make(contextOf(rest, forget), OWN)).rejects.toThrow(Error);
      expect(seen).toEqual(['sent', 'answered', 'forgotten']);
    }
  },
);

const instrumentsOf = ({ sourceInstrumentId, destinationInstrumentId }: Named) => ({
  idempotencyKey: ID,
  sourceInstrumentId,
  destinationInstrumentId,
});
const transferOf = (named: Named) => ({
  ...instrumentsOf(named),
  ...{ amount: '1.00', currency: 'MXN', description: 'd', externalReference: '1' },
});
const PAYMENTS: readonly Change[] = [
  ['createMoneyOut', (context, named) => createMoneyOut(transferOf(named), context)],
  ['createInternalTransaction', (context, named) => createInternalTransaction(transferOf(named), context)],
  ['createPennyValidation', (context, named) => createPennyValidation(instrumentsOf(named), context)],
  [
    'refundTransaction',
    (context, { transactionId }) =>
      refundTransaction({ idempotencyKey: ID, transactionId, as: { reason: 'r' } }, context),
  ],
];

it('each change of the graph is tried here', () => {
  // Who asks for a token has read nothing.
  const { issueCredentialToken: _token, ...fields } = buildSchema().getMutationType()?.getFields() ?? {};
  const tried = [...CHANGES, ...PAYMENTS].map(([name]) => name);
  expect(tried.toSorted(), 'CHANGES and PAYMENTS').toEqual(Object.keys(fields).toSorted());
  const keyless = KEYLESS_CHANGES.map(({ name }) => name);
  const told = 'KEYLESS_CHANGES, which are tried with lost answers and with 401s';
  expect(keyless.toSorted(), told).toEqual(CHANGES.map(([name]) => name).toSorted());
});

const INSTRUMENTS = [OWN.sourceInstrumentId, OWN.destinationInstrumentId];
/** What the look-ups of a caller who is narrowed to the customer find. Other transactions have the customer for their source. */
const LOOK_UPS = {
  instruments: {
    find: (key, id) =>
      key === 'id' && INSTRUMENTS.includes(id) ? { id, alias: 'a', type: 'RECEIVER', rfc: 'ND' } : null,
  },
  transactions: {
    ownsSide: async (id, side) => (id === OWN.transactionId) === (side === 'destinationInstrument'),
  },
} satisfies { readonly [Noun in keyof OwnershipReads]: Partial<OwnershipReads[Noun]> };

/** As much of the engine of payments as asks whether a payment may be made, and sends it. */
const execute = async ({ calls, body }: MoneyOrder) => {
  const because = await calls.check?.();
  if (because !== undefined) return { kind: 'nothing-moved', because };
  await calls.send(body, 1, AbortSignal.timeout(1_000), undefined);
  return NOTHING_MORE;
};

/** What a change comes to: what has been sent to the service, or the code of the error where that is nothing. */
async function outcomeOf([name, make]: Change, named: Named, isNarrowed: boolean): Promise<string> {
  const sent: unknown[] = [];
  const send = async (...request: unknown[]): Promise<Attempt> => {
    sent.push(request);
    return LOST;
  };
  const whole = { clientId: CLIENT_ID, send };
  const rest = isNarrowed
    ? scopeChanges(whole, customerScope(CUSTOMER), () => LOOK_UPS as unknown as OwnershipReads)
    : whole;
  const { identity, reads, services } = contextOf(rest, () => undefined);
  const readAfter = async () => ({ events: [], hasMore: false });
  const context = {
    identity,
    reads: { ...reads, events: { readAfter } },
    services: { ...services, money: { execute } },
    budget: { log: { isOver: false, turn: async () => undefined, signal: AbortSignal.timeout(1_000) } },
  } as unknown as Context;
  const failure = await make(context, named).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure, name).toBeInstanceOf(Error);
  if (sent.length > 0) return JSON.stringify(sent);
  return failure instanceof Error && 'code' in failure ? String(failure.code) : String(failure);
}

/** Changes that a customer cannot make, as webhooks are the client's. */
const OF_THE_CLIENT: Readonly<Record<string, string>> = {
  createWebhook: 'FORBIDDEN',
  createLegacyWebhook: 'FORBIDDEN',
  updateWebhook: 'NOT_FOUND',
  deleteWebhook: 'NOT_FOUND',
};

it.each([...CHANGES, ...PAYMENTS])(
  'a narrowed caller makes %s of what is its own, and of nothing that is not',
  async (...change) => {
    const [name] = change;
    const whole = await outcomeOf(change, OWN, false);
    const told = 'FORBIDDEN where src/upstream/session/scoped-changes.ts lists no check for the route';
    expect(await outcomeOf(change, OWN, true), told).toBe(OF_THE_CLIENT[name] ?? whole);
    if (name in OF_THE_CLIENT) return;
    const tried: string[] = [];
    for (const key of Object.keys(OWN)) {
      const others = { ...OWN, [key]: randomUUID() };
      if ((await outcomeOf(change, others, false)) === whole) continue;
      tried.push(key);
      expect(await outcomeOf(change, others, true), key).toMatch(/^(DESTINATION_)?NOT_FOUND$/);
    }
    expect(tried, 'the ids of OWN that this change names').not.toEqual([]);
  },
);

it.each(PAYMENTS)(
  'what was read until %s has ended is forgotten then, also if it may move later',
  async (_name, make) => {
    const seen: string[] = [];
    const execute = async () => {
      seen.push('sent');
      await Promise.resolve();
      seen.push('ended');
      return NOTHING_MORE;
    };
    // As much of a context as a payment asks for.
    const context = {
      identity: { caller: { clientId: CLIENT_ID } },
      reads: { session: { rest: {} }, forget: () => void seen.push('forgotten') },
      services: { money: { execute } },
      budget: {},
    } as unknown as Context;
    await expect(make(context, OWN)).rejects.toThrow('may or may not have moved');
    expect(seen).toEqual(['sent', 'ended', 'forgotten']);
  },
);
