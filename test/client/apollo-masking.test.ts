import { ApolloClient, ApolloLink, InMemoryCache } from '@apollo/client';
import { map, mergeMap } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { apolloSource, cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { follow, memoryIntents, pay, typed } from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** A client that masks data gives a caller no field of a fragment: nobody reads those of a payment or of a feed from the cache. */

// Apollo warns of masked data that is not cached.
beforeEach(() => void vi.spyOn(console, 'warn').mockReturnValue());
afterEach(() => void vi.restoreAllMocks());

const PAY = typed<
  { readonly createMoneyOut: { readonly __typename: string } },
  { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
>(`mutation Pay($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename ...End } }
fragment End on CreateMoneyOutResult {
  ... on CreateMoneyOutSuccess { transaction { ...Sent } }
  ... on UserError { code message }
  ... on OutcomeUnknown { message safeToRetry retryUntil }
}
fragment Sent on Transaction { id }`);
const CREDITS = typed<
  { readonly moneyIn: { readonly cursor: string } },
  { readonly after: string | null }
>(`subscription Credits($after: Cursor) { moneyIn(after: $after) { cursor ...Credit } }
fragment Credit on MoneyInEvent { id paymentConcept }`);
/** An app's own, which passes each result on later. */
const later = new ApolloLink((operation, forward) =>
  forward(operation).pipe(mergeMap(async (result) => result)),
);
/** One that passes on what it knows of a result. */
const plain = new ApolloLink((operation, forward) =>
  forward(operation).pipe(map(({ extensions: _, ...result }) => result)),
);
/** One that does both, as one that decrypts. */
const anew = new ApolloLink((operation, forward) =>
  forward(operation).pipe(mergeMap(async ({ extensions: _, ...result }) => result)),
);

describe.each([
  ['that knows the types', new InMemoryCache(cacheOptions)],
  ['that knows no type, as of a later version', new InMemoryCache()],
])('over a client that masks data, with a cache %s', (_, cache) => {
  function begin(before: readonly ApolloLink[] = []) {
    const fake = createFakeSource();
    const link = ApolloLink.from([...before, createLink(fake)]);
    const client = new ApolloClient({ cache, link, dataMasking: true });
    return { fake, source: apolloSource(client) };
  }

  async function ends(createMoneyOut: object) {
    const { fake, source } = begin();
    const paying = pay(source, PAY, { amount: '1.00' }, { store: memoryIntents(), patienceMs: 0 });
    (await until(() => fake.calls[0])).answer({ data: { createMoneyOut } });
    return paying;
  }

  it('a payment that is done has its transaction', async () => {
    const transaction = { __typename: 'Transaction', id: '7f3a' };
    expect(await ends({ __typename: 'CreateMoneyOutSuccess', transaction })).toMatchObject({
      status: 'done',
      result: { transaction: { id: '7f3a' } },
    });
  });

  it('a payment that is refused is told so', async () => {
    const refusal = { __typename: 'ValidationError', code: 'INVALID_INPUT', message: 'No.' };
    expect(await ends(refusal)).toMatchObject({ status: 'refused', code: 'INVALID_INPUT', message: 'No.' });
  });

  it.each([
    ['', []],
    [', behind a link that passes results on later', [later]],
    [', behind a link that passes no extensions on', [plain]],
    [', behind a link that builds results anew, later', [anew]],
  ])('an event of a feed has its fields, and what the gateway could not give of it%s', async (_, before) => {
    const { fake, source } = begin(before);
    const onErrors = vi.fn();
    const feed = follow(source, CREDITS, {
      store: { load: () => ({ cursor: 'start' }), save() {} },
      onErrors,
    });
    const seen: unknown[] = [];
    void (async () => {
      for await (const credit of feed) seen.push(credit);
    })();
    const { sink } = await until(() => fake.subscriptions[0]);
    sink.opened();
    const credits = ['a', 'b'].map((cursor) => ({
      __typename: 'MoneyInEvent',
      cursor,
      id: cursor,
      paymentConcept: `credit ${cursor}`,
    }));
    const errors = [{ message: 'Not yours.', path: ['moneyIn', 'transaction'] }];
    for (const moneyIn of credits)
      sink.next({ data: { moneyIn }, ...(moneyIn.cursor === 'b' && { errors }) });
    await until(() => seen.length === 2);
    feed.close();
    expect(seen).toEqual(credits);
    expect(onErrors.mock.calls).toEqual([[errors, credits[1]]]);
  });
});
