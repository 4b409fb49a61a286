import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { SqliteLog } from '../../../src/events/sqlite/sqlite-log.ts';
import { moneyIn } from '../../helpers/events.ts';
import { until } from '../../helpers/until.ts';

/** As many as a reader reads at a time. */
const PAGE = 64;
const PAGES = 30;

let dataDir: string;
let log: SqliteLog;
/** The position before the first event. */
let start: string;
let turns: number;
let isOver: boolean;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-turns-'));
  log = new SqliteLog({ dataDir, retention: 10_000, metrics: silentMetrics, now: Date.now });
  start = await log.head('client');
  await Promise.all(Array.from({ length: PAGES * PAGE }, () => log.append('client', moneyIn())));
  turns = 0;
  isOver = false;
  const everyTurn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(everyTurn);
  };
  setImmediate(everyTurn);
});
afterEach(async () => {
  isOver = true;
  await log.stop();
  await rm(dataDir, { recursive: true });
});

it('a reader that comes back from far behind lets others have their turn after each page', async () => {
  const stream = await log.follow('client', { after: start, topics: ['of no event'] });
  const pulled = stream.next();
  await until(() => stream.caughtUpTo() !== undefined);
  expect(turns).toBeGreaterThanOrEqual(PAGES - 5);
  await stream.return?.();
  await pulled;
});

it('readers that come back together share the turns, so that none is a page behind for long', async () => {
  // Each begins at another place: those of one place share their pages.
  const { events } = await log.readAfter('client', start, 10);
  turns = 0;
  const streams = await Promise.all(
    events.map(({ cursor }) => log.follow('client', { after: cursor, topics: ['of no event'] })),
  );
  const pulled = streams.map((stream) => stream.next());
  await until(() => streams.every((stream) => stream.caughtUpTo() !== undefined));
  expect(turns).toBeGreaterThanOrEqual(10 * (PAGES - 5));
  await Promise.all(streams.map((stream) => stream.return?.()));
  await Promise.all(pulled);
});
