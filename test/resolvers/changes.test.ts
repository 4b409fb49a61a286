import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
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
import type { CustomerScope } from '../../src/upstream/customer-scope.ts';
import { scopeChanges } from '../../src/upstream/session/scoped-changes.ts';
import { CLIENT_ID } from '../helpers/http-stub.ts';

const ID = randomUUID();
const OWNED = { bankId: ID, ownerId: ID, clientBankAdapterId: ID };
const CARD = { destinationBankId: ID, cardNumber: '4111111111111111', holderName: 'h' };
const WEBHOOK = { type: 'CEP', url: 'https://example.mx/hook' } as const;

type Change = readonly [name: string, make: (context: Context) => Promise<unknown>];
const CHANGES: readonly Change[] = [
  ['createPrivateAccount', (context) => createPrivateAccount({ ...OWNED, accountId: ID }, context)],
  [
    'createCustomerPrivateAccount',
    (context) => createCustomerPrivateAccount({ ...OWNED, customerId: ID }, context),
  ],
  [
    'registerInstrument',
    (context) =>
      registerInstrument({ sourceBankId: ID, alias: 'a', rfc: 'ND', receiver: { debitCard: CARD } }, context),
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
    services: { ingress: { target: () => undefined, token: () => undefined } },
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
      await expect(make(contextOf(rest, forget))).rejects.toThrow(Error);
      expect(seen).toEqual(['sent', 'answered', 'forgotten']);
    }
  },
);

const PAID = { idempotencyKey: randomUUID(), sourceInstrumentId: ID, destinationInstrumentId: ID };
const TRANSFER = {
  ...PAID,
  ...{ amount: '1.00', currency: 'MXN', description: 'd', externalReference: '1' },
};
const PAYMENTS: readonly Change[] = [
  ['createMoneyOut', (context) => createMoneyOut(TRANSFER, context)],
  ['createInternalTransaction', (context) => createInternalTransaction(TRANSFER, context)],
  ['createPennyValidation', (context) => createPennyValidation(PAID, context)],
  [
    'refundTransaction',
    (context) => refundTransaction({ ...PAID, transactionId: ID, as: { reason: 'r' } }, context),
  ],
];

it('each change of the graph is tried here', () => {
  // Who asks for a token has read nothing.
  const { issueCredentialToken: _token, ...fields } = buildSchema().getMutationType()?.getFields() ?? {};
  const tried = [...CHANGES, ...PAYMENTS].map(([name]) => name);
  expect(tried.toSorted(), 'CHANGES and PAYMENTS').toEqual(Object.keys(fields).toSorted());
});

/** Changes that a caller narrowed to a customer has not. */
const FOR_THE_WHOLE_CLIENT = ['createLegacyWebhook', 'createWebhook'];

it('what a narrowed caller must own is said for the route of each change but those that it has not', async () => {
  // As much of a customer's scope as a change of its own asks for.
  const scope = { owner: () => true } as unknown as CustomerScope;
  const unlisted: string[] = [];
  for (const [name, make] of CHANGES) {
    const send = async (): Promise<Attempt> => LOST;
    const narrowed = scopeChanges({ clientId: CLIENT_ID, send }, scope, () => {
      throw new Error('These changes need no look-up.');
    });
    const rest: typeof narrowed = {
      ...narrowed,
      async send(...sent) {
        const told = await narrowed.send(...sent);
        if (told.kind === 'failed' && told.error.code === 'FORBIDDEN') unlisted.push(name);
        return told;
      },
    };
    await expect(make(contextOf(rest, () => undefined))).rejects.toThrow(Error);
  }
  const told = 'src/upstream/session/scoped-changes.ts lists no check for the route of these';
  expect(unlisted.toSorted(), told).toEqual(FOR_THE_WHOLE_CLIENT);
});

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
    await expect(make(context)).rejects.toThrow('may or may not have moved');
    expect(seen).toEqual(['sent', 'ended', 'forgotten']);
  },
);
