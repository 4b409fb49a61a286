import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { forward } from '../../src/cli/forward/forward.ts';
import { Letters } from '../../src/cli/forward/letters.ts';
import type { ForwardedEvent } from '../../src/cli/forward/receiver.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { readMetric } from '../helpers/fleet.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

/** After so long the command looks at the log without having heard of an event, in milliseconds. */
const LOOK_EVERY_MS = 4_000;

let restoreClock = (): void => {};
afterEach(() => {
  vi.unstubAllGlobals();
  restoreClock();
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
  const forwarding = forward(
    {
      graph: {
        url: gateway.graphql,
        token: { renews: false, get: async () => gateway.sandbox.accessToken },
      },
      types: ['MONEY_IN'],
      from: null,
      stateFile: join(folder, 'a.cursor'),
      schedule: undefined,
      letters: new Letters(join(folder, 'a.sqlite')),
      receiver: {
        id: 'a',
        shownAs: 'a receiver',
        take: async (event) => void taken.push(event),
        close: async () => undefined,
      },
    },
    stop.signal,
  );
  await until(() => pages > 1 && taken.length > 0);
  expect(taken).toMatchObject([{ type: 'MONEY_IN', amount: { amount: '6.50' } }]);
  stop.abort();
  await forwarding;
  await rm(folder, { recursive: true });
});
