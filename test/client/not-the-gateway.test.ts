import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { ConnectionLost } from '../../packages/client/src/graphql-ws.ts';
import { memoryIntents, pay, watch } from '../../packages/client/src/index.ts';
import { CEP_STATUS } from '../../packages/client/src/schema.ts';
import { INPUT, MUTATION } from './scripted.ts';

const json = (answer: unknown, status: number, headers = {}) =>
  new Response(JSON.stringify(answer), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
const FINAL = `event: next
data: {"data":{"cepStatus":{"transactionId":"one"}}}

event: complete
data:

`;

/** The options of a source whose requests are answered one after another. */
const answering = (...answers: Response[]) => ({
  url: 'http://gateway/graphql',
  token: () => 'a token',
  fetch: async () => answers.shift() ?? Response.error(),
});

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('what is watched over %s is asked for again where something else answers in JSON', async (_, create) => {
  const source = create(
    answering(
      json({ message: 'Service Unavailable' }, 503),
      json({ message: 'Not Found' }, 404),
      json({ ok: true }, 200),
      json(null, 200),
      json({ data: null }, 200),
      new Response(FINAL, { headers: { 'content-type': 'text/event-stream' } }),
    ),
  );
  const seen: string[] = [];
  for await (const { transactionId } of watch(source, CEP_STATUS, { transactionId: 'one' }, () => () => {})) {
    seen.push(transactionId);
  }
  expect(seen).toEqual(['one']);
});

describe('something else than the gateway that asks to wait', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const page = (retryAfter: string) =>
    new Response('<h1>Service Unavailable</h1>', {
      status: 503,
      headers: { 'content-type': 'text/html', 'retry-after': retryAfter },
    });

  it.each([
    ['fetch', createFetch],
    ['graphql-sse', createEventStreams],
  ])('is asked again over %s once that time is over, and not sooner', async (_, create) => {
    const answers = answering(
      page('7'),
      page('Wed, 21 Oct 2015 07:28:00 GMT'),
      new Response(FINAL, { headers: { 'content-type': 'text/event-stream' } }),
    );
    const asked: number[] = [];
    const fetch = () => {
      asked.push(Date.now());
      return answers.fetch();
    };
    const source = create({ ...answers, fetch });
    const watched = watch(source, CEP_STATUS, { transactionId: 'one' }, () => () => {});
    let isOver = false;
    void (async () => {
      for await (const _update of watched);
      isOver = true;
    })();
    while (!isOver) await vi.advanceTimersByTimeAsync(100);
    const [first = 0, second = 0, third = 0] = asked;
    expect(second - first).toBeGreaterThanOrEqual(7_000);
    // A date is not read: it waits as for an answer that names no time.
    expect(third - second).toBeLessThan(1_000);
  });
});

it('a query that something else answers in JSON fails with the status', async () => {
  const source = createFetch(answering(json({ message: 'Service Unavailable' }, 503)));
  const failure = await source.query('{ eventCursor }', {}).catch((cause: unknown) => cause);
  expect(failure).toBeInstanceOf(ConnectionLost);
  expect(failure).toMatchObject({ code: 503, message: expect.stringContaining('503') });
});

it('an error within a payment’s result says nothing of the money, also where the answer asks to wait', async () => {
  const error = { message: 'Busy.', path: ['pay', 'transaction'], extensions: { code: 'UPSTREAM_TIMEOUT' } };
  const source = createFetch(
    answering(json({ data: { pay: null }, errors: [error] }, 200, { 'retry-after': '60' })),
  );
  const outcome = await pay(source, MUTATION, INPUT, { store: memoryIntents(), patienceMs: 0 });
  expect(outcome.status).toBe('unknown');
});
