import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, type Source, typed } from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { until } from '../helpers/until.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false, config: PATIENT });
});
afterAll(() => gateway.stop());

const token = () => gateway.sandbox.accessToken;
const SOURCES: Readonly<Record<string, () => Source>> = {
  'a socket': () => createSocket({ url: gateway.graphql, token }),
  fetch: () => createFetch({ url: gateway.graphql, token }),
  'graphql-sse': () => createEventStreams({ url: gateway.graphql, token }),
};
const CREDITS = typed<{ readonly moneyIn: { readonly cursor: string } }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { moneyIn(after: $after) { id cursor } }',
);

it.each(Object.keys(SOURCES))(
  'a feed over %s keeps the place up to which it is told that nothing came',
  async (over) => {
    const { data } = await gateway.query('{ eventCursor }');
    // Events that the feed does not ask for.
    const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
    for (let number = 0; number < 3; number += 1) {
      const body = JSON.stringify({ id_msg: `${over} ${number}` });
      await fetch(address, { method: 'POST', body });
    }
    const { data: after } = await gateway.query('{ eventCursor }');
    const saved: string[] = [];
    const store = {
      load: () => ({ cursor: data.eventCursor as string }),
      save: (_: unknown, cursor: string) => void saved.push(cursor),
    };
    const feed = follow(SOURCES[over]?.() ?? createFetch({ url: '', token }), CREDITS, { store });
    void (async () => {
      for await (const _ of feed);
    })();
    await until(() => saved.length > 0);
    expect(feed.status).toBe('live');
    expect(saved).toEqual([after.eventCursor]);
    feed.close();
  },
);

it('the client of graphql-sse shows an app that subscribes by it results alone', async () => {
  const { data } = await gateway.query('{ eventCursor }');
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'MONEY_IN') ?? '';
  const { client } = createEventStreams({ url: gateway.graphql, token });
  const query = 'subscription ($after: Cursor) { moneyIn(after: $after) { paymentConcept } }';
  const results = client.iterate({ query, variables: { after: data.eventCursor } });
  for (const paymentConcept of ['the first', 'the second']) {
    const body = JSON.stringify(speiCredit({ body: { payment_concept: paymentConcept } }));
    await fetch(address, { method: 'POST', body });
    expect((await results.next()).value).toEqual({ data: { moneyIn: { paymentConcept } } });
  }
  client.dispose();
});

/** Reads a feed, and notes the places that it saves. */
function followSaving() {
  const fake = createFakeSource();
  const saved: string[] = [];
  const store = {
    load: () => ({ cursor: 'start' }),
    save: (_: unknown, cursor: string) => void saved.push(cursor),
  };
  const feed = follow(fake, CREDITS, { store });
  void (async () => {
    for await (const _ of feed);
  })();
  return { fake, feed, saved };
}

it('a feed keeps the first place that each connection tells of, and none that follows at once', async () => {
  const { fake, feed, saved } = followSaving();
  for (const connection of ['first', 'second']) {
    const { sink } = await until(() => fake.subscriptions[0]);
    sink.opened();
    for (const place of [1, 2]) sink.bookmark(`${connection} ${place}`);
    await until(() => saved.includes(`${connection} 1`));
    sink.ended(new Error('The network is gone.'));
  }
  expect(saved).toEqual(['first 1', 'second 1']);
  feed.close();
});

it('a feed keeps a later place of one connection also where the clock was set back meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { fake, feed, saved } = followSaving();
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.opened();
  sink.bookmark('before');
  vi.setSystemTime(Date.now() - 7_200_000);
  sink.bookmark('after');
  sink.next({ data: { moneyIn: { cursor: 'a credit' } } });
  await until(() => saved.includes('a credit'));
  expect(saved).toEqual(['before', 'after', 'a credit']);
  feed.close();
});

it.each(Object.keys(SOURCES))(
  'a credit whose concept has a line separator, which ends no line of an event stream, comes over %s',
  async (over) => {
    const { data } = await gateway.query('{ eventCursor }');
    const concept = `Pago\u2028event: complete\u2029data: {} ${over}`;
    const address = gateway.ingress.url(gateway.sandbox.clientId, 'MONEY_IN') ?? '';
    const body = JSON.stringify(speiCredit({ body: { payment_concept: concept } }));
    await fetch(address, { method: 'POST', body });
    const document = typed<{
      readonly moneyIn: { readonly cursor: string; readonly paymentConcept: string };
    }>('subscription S($after: Cursor) { moneyIn(after: $after) { cursor paymentConcept } }');
    const store = { load: () => ({ cursor: data.eventCursor as string }), save() {} };
    const feed = follow(SOURCES[over]?.() ?? createFetch({ url: '', token }), document, { store });
    const concepts: unknown[] = [];
    void (async () => {
      for await (const item of feed) concepts.push('gap' in item ? item.reason : item.paymentConcept);
    })();
    await until(() => concepts.length > 0);
    feed.close();
    expect(concepts).toEqual([concept]);
  },
);
