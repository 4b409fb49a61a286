import { expect, it } from 'vitest';
import { follow, type Gap, isGap, memoryStore, typed } from '../../packages/client/src/index.ts';
import { until } from '../helpers/until.ts';
import { EVENTS, graphqlSseTo, type Numbered, socketTo, streamsTo } from './bindings.ts';
import { type Gateways, startGateways } from './gateways.ts';
import { judge } from './kept.ts';

const DOCUMENT = typed<{ readonly events: Numbered }, { readonly after: string | null }>(EVENTS);
const SOURCES = { 'graphql-ws': socketTo, fetch: streamsTo, 'graphql-sse': graphqlSseTo };

/** Follows over each transport. */
function followByEach({ ports: [port], sandbox }: Gateways) {
  const address = {
    url: `http://127.0.0.1:${port}/graphql`,
    token: async () => {
      const response = await fetch(`${sandbox.url}/sandbox`);
      return ((await response.json()) as { accessToken: string }).accessToken;
    },
  };
  return Object.values(SOURCES).map((sourceTo) => {
    const feed = follow(sourceTo(address), DOCUMENT, { store: memoryStore() });
    const seen: (Numbered | Gap<Numbered>)[] = [];
    void (async () => {
      for await (const item of feed) seen.push(item);
    })();
    return { feed, seen };
  });
}

// The one event that a run of follow.test.ts saw twice had been delivered twice: its answer was lost together with the log.
it('an event whose answer is lost comes once over each transport, and twice, behind a gap, where the log is lost as well', async () => {
  await using gateways = await startGateways({ redis: false, lifetimeSeconds: 600 });
  const follows = followByEach(gateways);
  try {
    const all = (is: (follow: (typeof follows)[number]) => boolean) => until(() => follows.every(is));
    const shows = (id: string, times: number) =>
      all(({ seen }) => seen.filter((item) => !isGap(item) && item.id === id).length === times);
    await all(({ feed }) => feed.status === 'live');
    await gateways.deliver({ id_msg: '1' });
    await shows('1', 1);
    await gateways.restart('SIGKILL');
    await gateways.deliver({ id_msg: '1' });
    await gateways.deliver({ id_msg: '2' });
    await shows('2', 1);
    await gateways.loseLog();
    await gateways.deliver({ id_msg: '2' });
    await gateways.deliver({ id_msg: '3' });
    await shows('3', 1);
    for (const { seen } of follows) {
      expect(seen.map((item) => (isGap(item) ? 'gap' : item.id))).toEqual(['1', '2', 'gap', '2', '3']);
      const lines = seen.map((item) => (isGap(item) ? { gap: item.reason, cursor: '' } : item));
      expect(judge(lines, 3)).toEqual({ lost: 0, repeated: 1, gaps: 1, complete: true });
    }
  } finally {
    for (const { feed } of follows) feed.close();
  }
});
