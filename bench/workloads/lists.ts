import { setTimeout as sleep } from 'node:timers/promises';
import { type Contender, startContender } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import {
  account,
  accountPage,
  client,
  customer,
  firstAccountCursor,
  join,
  transaction,
  type Work,
} from '../lib/documents.ts';
import { load } from '../lib/load.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { type Stub, startStub } from '../lib/stub.ts';
import { BANKS_PATH, uuid } from '../upstream/data.ts';

const SIZES = [20, 1_000, 10_000, 100_000, 1_000_000];
const LATENCY_MS = 50;
const LARGEST_PAGE = 100;
const ROWS = 100;
/** How often each question is put, one after another. */
const TIMES = 9;
/** How long a walk may take. */
const PATIENCE_MS = 150_000;
const COLD_PROCESSES = 3;
const [FIRST = '', SECOND = '', THIRD = ''] = credentials(3);

interface Asked {
  readonly milliseconds: number;
  readonly calls: number;
}

/** Asks once, and counts the REST calls. */
async function ask(contender: Contender, stub: Stub, work: Work, authorization = FIRST): Promise<Asked> {
  const before = await stub.calls();
  const { latenciesMs } = await load({
    url: contender.server.url,
    requests: 1,
    connections: 1,
    shot: () => contender.shot(work, authorization),
    check: expectData,
  });
  return { milliseconds: latenciesMs[0] ?? Number.NaN, calls: (await stub.calls()) - before };
}

function expectData({ status, text }: { readonly status: number; readonly text: string }): void {
  if (status !== 200 || text.includes('"errors"') || /(account|customer)":null/.test(text)) {
    throw new Error(`was answered with ${status} ${text.slice(0, 300)}`);
  }
}

/** Asks for a few different things of one kind; the median time and the most calls. */
async function askSome(contender: Contender, stub: Stub, workOf: (index: number) => Work): Promise<Asked> {
  const asked: Asked[] = [];
  for (let index = 0; index < TIMES; index += 1) asked.push(await ask(contender, stub, workOf(index)));
  return {
    milliseconds: percentile(
      asked.map(({ milliseconds }) => milliseconds),
      0.5,
    ),
    calls: Math.max(...asked.map(({ calls }) => calls)),
  };
}

/** Asks until there is an answer: the first one may have to wait for longer than an operation may take. */
async function askUntilAnswered(contender: Contender, work: Work): Promise<number> {
  const start = performance.now();
  for (;;) {
    let answered = true;
    await load({
      url: contender.server.url,
      requests: 1,
      connections: 1,
      shot: () => contender.shot(work, FIRST),
      check: ({ text }) => {
        answered = !text.includes('"errors"');
        if (!answered && !text.includes('UPSTREAM_TIMEOUT')) throw new Error(text.slice(0, 300));
      },
    });
    if (answered) return performance.now() - start;
    if (performance.now() - start > PATIENCE_MS) throw new Error('the list was not read in time');
  }
}

/** The p95 of another caller's transactions, until something is over. */
async function besideP95(contender: Contender, isOver: () => boolean, atLeast: number): Promise<number> {
  const latencies: number[] = [];
  while (!isOver() || latencies.length < atLeast) {
    const { latenciesMs } = await load({
      url: contender.server.url,
      requests: 20,
      connections: 2,
      shot: () => contender.shot(transaction, SECOND),
      check: expectData,
    });
    latencies.push(...latenciesMs);
  }
  return percentile(latencies, 0.95);
}

/** Asks processes that know nothing of the list yet. */
async function askCold(stub: Stub): Promise<Asked> {
  const asked: Asked[] = [];
  for (let time = 0; time < COLD_PROCESSES; time += 1) {
    await using fresh = await startContender('Pasarela', stub.url);
    for (let call = 0; call < 3; call += 1) await ask(fresh, stub, client);
    for (let call = 0; call < 10; call += 1) await ask(fresh, stub, transaction);
    asked.push(await ask(fresh, stub, accountPage(20)));
  }
  return {
    milliseconds: percentile(
      asked.map(({ milliseconds }) => milliseconds),
      0.5,
    ),
    calls: Math.max(...asked.map(({ calls }) => calls)),
  };
}

interface Sized {
  readonly size: number;
  readonly roundTripMs: number;
  readonly cold: Asked;
  readonly baseline: Asked;
  readonly middle: Asked;
  readonly walkMs: number;
  readonly walkCalls: number;
  readonly alone: number;
  readonly beside: number;
  readonly bytesPerItem: number;
  readonly one: Asked;
  readonly related: Asked;
  readonly rows: Asked;
}

async function measureSize(size: number): Promise<Sized> {
  await using stub = await startStub();
  await stub.configure({ customers: size, latencyMs: LATENCY_MS, largestPage: LARGEST_PAGE });
  await using contender = await startContender('Pasarela', stub.url);
  await using baseline = await startContender('baseline', stub.url);
  const roundTripMs = await roundTrip(stub);
  for (const authorization of [FIRST, SECOND, THIRD]) {
    for (let time = 0; time < 3; time += 1) await ask(contender, stub, client, authorization);
  }
  for (let time = 0; time < 30; time += 1) await ask(contender, stub, transaction, THIRD);
  await ask(baseline, stub, accountPage(20));
  const cold = await askCold(stub);
  const floorAsked = await ask(baseline, stub, accountPage(20));
  const cursorAt = await cursorsOf(contender);
  const middle = await askSome(contender, stub, (index) =>
    accountPage(20, cursorAt(Math.max(20, Math.floor(size / 40) * 20 - index * 20) - 1)),
  );
  const alone = await besideP95(contender, () => true, 200);
  const rss = contender.server.rssBytes();
  const calls = await stub.calls();
  let isOver = false;
  const walking = askUntilAnswered(contender, join(ROWS)).finally(() => {
    isOver = true;
  });
  const beside = await besideP95(contender, () => isOver, size > LARGEST_PAGE ? 40 : 200);
  const walkMs = await walking;
  const walkCalls = (await stub.calls()) - calls;
  await sleep(200);
  const bytesPerItem = Math.max(0, contender.server.rssBytes() - rss) / (2 * size);
  const some = (index: number) => Math.floor(((index + 0.5) * size) / TIMES);
  return {
    size,
    roundTripMs,
    cold,
    baseline: floorAsked,
    middle,
    walkMs,
    walkCalls,
    alone,
    beside,
    bytesPerItem,
    one: await askSome(contender, stub, (index) => account(uuid('account', some(index)))),
    related: await askSome(contender, stub, (index) => customer(uuid('customer', some(index)))),
    rows: await askSome(contender, stub, () => join(ROWS)),
  };
}

/** Makes cursors of the list of accounts for any place, after the one of the first page. */
async function cursorsOf(contender: Contender): Promise<(offset: number) => string> {
  let first = '';
  await load({
    url: contender.server.url,
    requests: 1,
    connections: 1,
    shot: () => contender.shot(firstAccountCursor, FIRST),
    check: (answer) => {
      expectData(answer);
      first = /"startCursor":"([^"]+)"/.exec(answer.text)?.[1] ?? '';
    },
  });
  const text = Buffer.from(first, 'base64url').toString();
  if (!/:0$/.test(text)) throw new Error('the first page has no cursor of a known form');
  return (offset) => Buffer.from(text.replace(/0$/, String(offset))).toString('base64url');
}

async function roundTrip(stub: Stub): Promise<number> {
  const { latenciesMs } = await load({
    url: stub.url,
    requests: 40,
    connections: 1,
    shot: () => ({ method: 'GET', path: BANKS_PATH, headers: {} }),
    check: () => {},
  });
  return percentile(latenciesMs, 0.5);
}

/** Merchants of five sizes, over an upstream in pages. */
export async function w13(): Promise<Section> {
  const sized: Sized[] = [];
  for (const size of SIZES) sized.push(await measureSize(size));
  const cell = ({ milliseconds, calls }: Asked, { roundTripMs }: Sized) =>
    `${calls} calls, ${(milliseconds / roundTripMs).toFixed(2)}`;
  const trips = (pick: (of: Sized) => Asked) =>
    Math.max(...sized.map((of) => pick(of).milliseconds / of.roundTripMs));
  const calls = (pick: (of: Sized) => Asked) => Math.max(...sized.map((of) => pick(of).calls));
  const goal = (what: string, limit: number, reached: number, unit = '') => ({
    work: 'W13',
    what,
    limit,
    reached,
    unit,
  });
  const large = sized.filter(({ size }) => size >= 100_000);
  const [largest] = large.slice(-1);
  return {
    title: 'W13, merchants of five sizes',
    method: `As many customers as said, each with an account, in pages of ${LARGEST_PAGE} at ${LATENCY_MS} ms a call. A cell says how many REST calls it took, and how many of the upstream’s round trips. The baseline reads the first page, as no more can be written by hand without an index. The walk is what the first join waits for; another caller reads transactions meanwhile.`,
    columns: [
      'customers',
      'first 20 accounts, cold',
      'baseline',
      '20 from the middle',
      'the first walk',
      'p95 of another, alone → meanwhile, ms',
      'bytes an item, resident',
      'account(by: id)',
      'customer(id) with accounts',
      `join of ${ROWS}`,
    ],
    rows: sized.map((of) => [
      number(of.size),
      cell(of.cold, of),
      cell(of.baseline, of),
      cell(of.middle, of),
      `${number(of.walkCalls)} calls, ${number(of.walkMs / 1_000)} s`,
      `${number(of.alone)} → ${number(of.beside)}`,
      number(of.bytesPerItem),
      cell(of.one, of),
      cell(of.related, of),
      cell(of.rows, of),
    ]),
    goals: [
      goal(
        'a page cold, REST calls',
        2,
        Math.max(
          calls(({ cold }) => cold),
          calls(({ middle }) => middle),
        ),
      ),
      goal(
        'a page cold, round trips',
        1.3,
        Math.max(
          trips(({ cold }) => cold),
          trips(({ middle }) => middle),
        ),
      ),
      goal(
        'account(by: id), REST calls',
        2,
        calls(({ one }) => one),
      ),
      goal(
        'account(by: id), round trips',
        2.2,
        trips(({ one }) => one),
      ),
      goal(
        'customer with accounts, round trips',
        2.2,
        trips(({ related }) => related),
      ),
      goal(
        'join, REST calls',
        ROWS + 4,
        calls(({ rows }) => rows),
      ),
      goal(
        'join, round trips',
        2.5,
        trips(({ rows }) => rows),
      ),
      goal('memory of the places, bytes an item', 200, largest?.bytesPerItem ?? Number.NaN),
      goal(
        'another caller’s p95 during the walk, × alone',
        2,
        Math.max(...large.map((of) => of.beside / of.alone)),
      ),
    ],
  };
}

const CALLERS = 20;
const MERCHANT = 50_000;

/** Twenty callers at once who know nothing yet of a merchant of 50,000. */
export async function w14(): Promise<Section> {
  await using stub = await startStub();
  await stub.configure({ customers: MERCHANT, latencyMs: LATENCY_MS, largestPage: LARGEST_PAGE });
  await using contender = await startContender('Pasarela', stub.url);
  const callers = credentials(CALLERS);
  for (const authorization of callers) await ask(contender, stub, client, authorization);
  for (let time = 0; time < 20; time += 1) await ask(contender, stub, transaction);
  const rss = contender.server.rssBytes();
  let most = rss;
  const watch = setInterval(() => {
    most = Math.max(most, contender.server.rssBytes());
  }, 20);
  const before = await stub.calls();
  const { wallMs } = await load({
    url: contender.server.url,
    requests: CALLERS,
    connections: CALLERS,
    shot: (index) => contender.shot(join(ROWS), callers[index] ?? FIRST),
    check: expectData,
  });
  clearInterval(watch);
  const calls = (await stub.calls()) - before;
  const more = (most - rss) / 1024 / 1024;
  return {
    title: 'W14, twenty callers at once',
    method: `The join of W1 by ${CALLERS} callers at once, each with a token of its own, of a merchant of ${number(MERCHANT)} customers and accounts of whom nothing is known yet. Memory is the most that was resident at any moment, over what was before.`,
    columns: ['callers', 'MB more', 'REST calls', 'seconds'],
    rows: [[String(CALLERS), number(more), number(calls), number(wallMs / 1_000)]],
    goals: [{ work: 'W14', what: 'resident memory, more', limit: 150, reached: more, unit: ' MB' }],
  };
}
