import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { CursorFile } from '../../src/cli/cursor-file.ts';
import { forward } from '../../src/cli/forward/forward.ts';
import { Letters } from '../../src/cli/forward/letters.ts';
import type { ForwardedEvent } from '../../src/cli/forward/receiver.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { openEventLog } from '../../src/events/open.ts';
import { eventNames } from '../../src/resolvers/events/event-names.ts';
import { moneyIn } from '../helpers/events.ts';
import { readMetric } from '../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

/** After so long the command looks at the log without having heard of an event, in milliseconds. */
const LOOK_EVERY_MS = 4_000;
/** So many events of other types the gateway looks through for one page. */
const SCANNED = 5_000;

let restoreClock = (): void => {};
afterEach(() => {
  vi.unstubAllGlobals();
  restoreClock();
});

const forwardingOf = (
  { graphql, sandbox }: RunningGateway,
  types: readonly string[],
  from: string | null,
  folder: string,
  taken: ForwardedEvent[],
) => ({
  graph: { url: graphql, token: { renews: false, get: async () => sandbox.accessToken } },
  types,
  from,
  stateFile: join(folder, 'a.cursor'),
  formerFiles: [],
  schedule: undefined,
  letters: new Letters(join(folder, 'a.sqlite')),
  receiver: {
    id: 'a',
    shownAs: 'a receiver',
    take: async (event: ForwardedEvent) => void taken.push(event),
    close: async () => undefined,
  },
});

it('brings an event that comes while a page without one is on its way, though only some types are asked for', async () => {
  await using gateway = await startGateway();
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const head = async () => (await gateway.query('{ eventCursor }')).data.eventCursor;
  const before = await head();
  const credit = async () => {
    await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
      clabe: accounts[0].clabe,
      amount: '6.50',
    });
    await until(async () => (await head()) !== before);
  };
  // It never looks by itself: what has come while it read wakes it.
  const { sleep } = clock;
  restoreClock = useClock({
    ...clock,
    sleep: (ms, options) => sleep(ms === LOOK_EVERY_MS ? 2 ** 31 - 1 : ms, options),
  });
  // The network: it hands on the first page once an event has come that is not in it.
  const real = globalThis.fetch;
  let pages = 0;
  vi.stubGlobal('fetch', async (...[input, init]: Parameters<typeof fetch>) => {
    const response = await real(input, init);
    if (!String(init?.body).includes('$first')) return response;
    pages += 1;
    if (pages === 1) {
      await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) > 0);
      await credit();
    }
    return response;
  });
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-forward-order-'));
  const stop = new AbortController();
  const taken: ForwardedEvent[] = [];
  const forwarding = forward(forwardingOf(gateway, ['MONEY_IN'], null, folder, taken), stop.signal);
  await until(() => pages > 1 && taken.length > 0);
  expect(taken).toMatchObject([{ type: 'MONEY_IN', amount: { amount: '6.50' } }]);
  stop.abort();
  await forwarding;
  await rm(folder, { recursive: true });
});

it('keeps its place in the midst of a long scan, where the gateway answers a page without an event', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-forward-order-'));
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const log = await openEventLog({
    redisUrl: undefined,
    dataDir: folder,
    retention: 10_000,
    names: eventNames,
    logger: silentLogger,
  });
  await Promise.all(Array.from({ length: SCANNED + 50 }, () => log.append(sandbox.clientId, moneyIn())));
  await log.stop();
  await using gateway = await startGateway({ sandbox, config: { dataDir: folder, eventsRetention: 10_000 } });
  const first = await gateway.query('{ events(first: 1) { nodes { cursor } } }');
  const from = first.data.events.nodes[0].cursor;
  const page = await gateway.query(
    'query ($after: Cursor) { events(types: [CEP], after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }',
    { after: from },
  );
  const { nodes, pageInfo } = page.data.events;
  expect({ nodes, goesOn: pageInfo.hasNextPage }).toEqual({ nodes: [], goesOn: true });
  // The network: what is saved where the second page is asked for is what a kill leaves.
  const real = globalThis.fetch;
  const saved: (string | undefined)[] = [];
  vi.stubGlobal('fetch', (...[input, init]: Parameters<typeof fetch>) => {
    if (String(init?.body).includes('$first')) saved.push(new CursorFile(join(folder, 'a.cursor')).cursor);
    return real(input, init);
  });
  const stop = new AbortController();
  const forwarding = forward(forwardingOf(gateway, ['CEP'], from, folder, []), stop.signal);
  await until(() => saved.length > 1);
  expect(saved.slice(0, 2)).toEqual([undefined, pageInfo.endCursor]);
  stop.abort();
  await forwarding;
  await rm(folder, { recursive: true });
});

it('ends at an event of a type that it does not know, and keeps its place before it', async () => {
  await using gateway = await startGateway();
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const from = (await gateway.query('{ eventCursor }')).data.eventCursor;
  for (const amount of ['6.51', '6.52'])
    await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount });
  // The network: a later gateway, whose second event is of a type of its own.
  const real = globalThis.fetch;
  vi.stubGlobal('fetch', async (...[input, init]: Parameters<typeof fetch>) => {
    const response = await real(input, init);
    if (!String(init?.body).includes('$first')) return response;
    const answer = JSON.parse(await response.text());
    if (answer.data.events.nodes.length > 1) answer.data.events.nodes[1].type = 'REFUND';
    return new Response(JSON.stringify(answer), response);
  });
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-forward-order-'));
  const taken: ForwardedEvent[] = [];
  const forwarding = forward(
    { ...forwardingOf(gateway, [], from, folder, taken), types: null },
    new AbortController().signal,
  );
  await expect(forwarding).rejects.toThrow(/is of the type REFUND, whose fields this version does not know/);
  expect(taken).toMatchObject([{ amount: { amount: '6.51' } }]);
  expect(new CursorFile(join(folder, 'a.cursor')).cursor).toBe(taken[0]?.cursor);
  await rm(folder, { recursive: true });
});
