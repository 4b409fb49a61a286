import { expect, it } from 'vitest';
import { PushStream } from '../../../src/common/push-stream.ts';
import type { Context } from '../../../src/operation/context.ts';
import { BadInputError } from '../../../src/resolvers/errors.ts';
import {
  followCep,
  followEvents,
  followMoneyIn,
  followTransaction,
} from '../../../src/resolvers/events/subscriptions.ts';
import { share } from './watching.ts';

const CLIENT = '11111111-2222-4333-8444-555555555555';
const CUSTOMER = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const STRANGER = '7c9e6679-7425-40de-944b-e07fc1f90ae8';
const CLABE = '646180157000000004';

class Nothing extends PushStream<never> {
  override connect(): void {}
  override stop(): void {}
}

/** What the log is asked to wait for, for a caller narrowed to a customer or not. */
async function waitedFor(
  customerId: string | undefined,
  follow: (context: Context) => Promise<unknown>,
): Promise<unknown> {
  const waited: unknown[] = [];
  const events = {
    async follow(clientId: string, { topics, needsLookup }: Record<string, unknown>) {
      waited.push([clientId, topics, needsLookup]);
      return new Nothing();
    },
  };
  const context = { identity: { caller: { clientId: CLIENT, customerId } }, reads: { events } };
  // A stream that has nothing to show asks for nothing else of its operation.
  await follow(context as unknown as Context);
  expect(waited).toHaveLength(1);
  return waited[0];
}

it.each([
  ['all', {}, ['MONEY_IN'], [`MONEY_IN owner ${CUSTOMER}`]],
  ['to a CLABE', { clabe: CLABE }, [`MONEY_IN clabe ${CLABE}`], [`MONEY_IN owner ${CUSTOMER}`]],
  ['of an owner', { ownerId: STRANGER }, [`MONEY_IN owner ${STRANGER}`], [`MONEY_IN owner ${STRANGER}`]],
])(
  'credits, %s, are waited for by what brings the fewest others; by a narrowed caller never by a CLABE, which may be another’s',
  async (_what, args, whole, narrowed) => {
    const credits = (context: Context) => followMoneyIn(args, context);
    expect(await waitedFor(undefined, credits)).toEqual([CLIENT, whole, undefined]);
    expect(await waitedFor(CUSTOMER, credits)).toEqual([CLIENT, narrowed, undefined]);
  },
);

it('events are waited for by their types; by a narrowed caller by those that name it, and never status updates', async () => {
  const all = (context: Context) => followEvents({}, context);
  expect(await waitedFor(undefined, all)).toEqual([CLIENT, undefined, undefined]);
  const own = [`MONEY_IN owner ${CUSTOMER}`, `CEP owner ${CUSTOMER}`];
  expect(await waitedFor(CUSTOMER, all)).toEqual([CLIENT, own, true]);
  const updates = (context: Context) => followEvents({ types: ['STATUS_UPDATE', 'MONEY_IN'] }, context);
  expect(await waitedFor(undefined, updates)).toEqual([CLIENT, ['STATUS_UPDATE', 'MONEY_IN'], undefined]);
  expect(await waitedFor(CUSTOMER, updates)).toEqual([CLIENT, own.slice(0, 1), false]);
});

it('a client that comes back over SSE goes on behind what it was told last, whatever its first request says', async () => {
  const followedFrom = async (told: object): Promise<unknown> => {
    const asked: unknown[] = [];
    const events = {
      async follow(_clientId: string, { after }: Record<string, unknown>) {
        asked.push(after);
        return new Nothing();
      },
    };
    const identity = { caller: { clientId: CLIENT } };
    await followEvents({ after: 'first' }, { identity, reads: { events }, ...told } as unknown as Context);
    return asked;
  };
  expect(await followedFrom({})).toEqual(['first']);
  expect(await followedFrom({ lastEventId: 'last' })).toEqual(['last']);
  expect(await followedFrom({ lastEventId: 'last', startsNow: true })).toEqual([undefined]);
});

it('a transaction is followed by both of its sides, and its receipt by the one that has paid alone', async () => {
  const { time, polls } = share();
  const id = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
  const received = { id, transactionStatus: 'INITIALIZED', metadata: { dataCep: { status: 'PENDING' } } };
  const context = {
    identity: { caller: { clientId: CLIENT, customerId: CUSTOMER }, requester: { group: '' } },
    reads: {
      renew: () => {},
      noteTold: () => {},
      end: () => {},
      events: { watch: async () => ({ add: () => [], stop: () => {} }) },
      session: {
        transactions: {
          get: async () => received,
          ownsSide: async (_id: string, side: string) => side === 'destinationInstrument',
        },
      },
    },
    services: { polls },
    // Nothing else of it is asked for.
  } as unknown as Context;
  const followed = followTransaction(id, context);
  expect(await followed.next()).toMatchObject({ value: { kind: 'SNAPSHOT', transaction: received } });
  await followed.return();
  const refused = expect(followCep(id, context).next()).rejects.toThrow(BadInputError);
  for (let lag = 0; lag < 5; lag += 1) await time.ring();
  await refused;
});
