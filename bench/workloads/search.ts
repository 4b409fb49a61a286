import { silentLogger } from '../../src/common/logger.ts';
import type { NewEvent } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { eventNames } from '../../src/resolvers/events/event-names.ts';
import { startRedis } from '../../test/helpers/redis.ts';
import { startCluster } from '../../test/helpers/redis-topologies.ts';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials } from '../lib/credentials.ts';
import { load } from '../lib/load.ts';
import { p95, within } from '../lib/measured.ts';
import type { RunningServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { percentile } from '../lib/stats.ts';
import { type Stub, startStub } from '../lib/stub.ts';
import { cep, moneyIn } from '../lib/webhooks.ts';
import { CLIENT_ID, uuid } from '../upstream/data.ts';

const EVENTS = 100_000;
/** Over so many days they came; each day is asked for. */
const DAYS = 100;
const DAY_MS = 24 * 3_600_000;
const FIRST_DAY = Date.parse('2026-01-01T00:00:00Z');
/** One in so many is a receipt, one in so many waited in a spool for up to a day. */
const [RECEIPTS, LATE] = [10, 50];
const OWNERS = 1_000;
const BATCH = 250;
/** How often each question is put, one after another, and before that unmeasured. */
const [TIMES, WARM_UP] = [400, 100];
const GOAL_MS = 20;

const QUERY = `query Search($from: DateTime, $to: DateTime, $id: ID, $key: String) {
  events(receivedFrom: $from, receivedTo: $to, transactionId: $id, trackingKey: $key) {
    nodes {
      id
      cursor
      receivedAt
      ... on MoneyInEvent { transactionId amount { amount currency } trackingKey payer { account name } }
      ... on CepEvent { bodyId rawStatus trackingKey }
    }
    pageInfo { hasNextPage endCursor }
  }
}`;

/** An event of the log, and what it can be found by. */
interface Sent {
  readonly event: NewEvent;
  readonly transactionId: string;
  readonly trackingKey: string;
}

function eventOf(index: number): Sent {
  const transactionId = uuid('searched', index);
  const trackingKey = `MBAN${String(index).padStart(20, '0')}`;
  const isReceipt = index % RECEIPTS === 0;
  const sent = moneyIn(uuid('owner', index % OWNERS));
  const message: { body: object } = isReceipt
    ? JSON.parse(cep(CLIENT_ID, transactionId)).payload
    : JSON.parse(sent.body);
  const payload = JSON.stringify({
    ...message,
    body: { ...message.body, id: transactionId, tracking_key: trackingKey },
  });
  const lateMs = index % LATE === 0 ? (index * 7_919) % DAY_MS : 0;
  const receivedAt = Math.max(FIRST_DAY, FIRST_DAY + (index / EVENTS) * DAYS * DAY_MS - lateMs);
  const event: NewEvent = {
    id: sent.id,
    type: isReceipt ? 'CEP' : 'MONEY_IN',
    receivedAt: new Date(receivedAt).toISOString(),
    payload,
    identity: sent.id,
    contents: sent.id,
    spoolable: true,
  };
  return { event, transactionId, trackingKey };
}

interface Question {
  readonly what: string;
  /** Events that each answer has to hold; undefined for a page that is full. */
  readonly found: number | undefined;
  variables(time: number): Readonly<Record<string, string>>;
}

const some = (time: number): Sent => eventOf((time * 7_919) % EVENTS);
const QUESTIONS: readonly Question[] = [
  {
    what: 'first page of a day',
    found: undefined,
    variables: (time) => {
      const day = FIRST_DAY + ((time * 37) % DAYS) * DAY_MS;
      return { from: new Date(day).toISOString(), to: new Date(day + DAY_MS).toISOString() };
    },
  },
  {
    what: 'a time when nothing came',
    found: 0,
    variables: (time) => ({ from: new Date(FIRST_DAY + 2 * DAYS * DAY_MS + time).toISOString() }),
  },
  { what: 'by transaction, a hit', found: 1, variables: (time) => ({ id: some(time).transactionId }) },
  { what: 'by transaction, a miss', found: 0, variables: (time) => ({ id: uuid('unknown', time) }) },
  { what: 'by tracking key, a hit', found: 1, variables: (time) => ({ key: some(time).trackingKey }) },
  { what: 'by tracking key, a miss', found: 0, variables: (time) => ({ key: `UNKNOWN${time}` }) },
];

interface Store {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  readonly dataDir: string;
  /** One read of the store itself, of one entry. */
  read(): Promise<unknown>;
}

/** The p95 of each question, in milliseconds, and of the store's own read. */
async function ask(server: RunningServer, store: Store): Promise<{ own: number; each: readonly number[] }> {
  const [authorization = ''] = credentials(1);
  const each: number[] = [];
  for (const { found, variables } of QUESTIONS) {
    const { latenciesMs } = await load({
      url: server.url,
      requests: WARM_UP + TIMES,
      connections: 1,
      shot: (time) => ({
        method: 'POST',
        path: '/graphql',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ query: QUERY, variables: variables(time) }),
      }),
      check: ({ status, text }) => {
        const count = text.split('"receivedAt"').length - 1;
        if (status !== 200 || count !== (found ?? 50)) {
          throw new Error(`was answered with ${status}, ${count} events: ${text.slice(0, 300)}`);
        }
      },
    });
    each.push(p95(latenciesMs.slice(WARM_UP)));
  }
  const ownMs: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    const start = performance.now();
    await store.read();
    ownMs.push(performance.now() - start);
  }
  return { own: percentile(ownMs, 0.95), each };
}

async function fill(append: (events: readonly NewEvent[]) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < EVENTS; index += BATCH) {
    await append(Array.from({ length: BATCH }, (_, more) => eventOf(index + more).event));
  }
}

const LOG = { retention: EVENTS, metrics: silentMetrics, names: eventNames, now: Date.now } as const;

async function inSqlite(stub: Stub) {
  await using folder = await temporaryFolder();
  const log = new SqliteLog({ ...LOG, dataDir: folder.path });
  await fill((events) => Promise.all(events.map((event) => log.append(CLIENT_ID, event))));
  await log.stop();
  // It is read in the gateway's own process.
  return await measure(stub, { name: 'SQLite', env: {}, dataDir: folder.path, read: async () => undefined });
}

async function inRedis(stub: Stub, name: string, redisUrl: string, read: () => Promise<unknown>) {
  await using folder = await temporaryFolder();
  const log = new RedisLog({ ...LOG, redisUrl, logger: silentLogger });
  await log.settled();
  await fill((events) => log.appendAll(CLIENT_ID, events));
  await log.stop();
  return await measure(stub, { name, env: { REDIS_URL: redisUrl }, dataDir: folder.path, read });
}

const measure = async (stub: Stub, store: Store) => {
  const program = gatewayProgram({ upstreamUrl: stub.url, dataDir: store.dataDir, env: store.env });
  return { name: store.name, ...(await within(program, (server) => ask(server, store))) };
};

/** W16: events found again among 100,000. */
export async function w16(): Promise<Section> {
  await using stub = await startStub();
  const key = `{${CLIENT_ID}}:log`;
  const results = [await inSqlite(stub)];
  {
    await using redis = await startRedis();
    const read = () => redis.admin.xrevrange(key, '+', '-', 'COUNT', 1);
    results.push(await inRedis(stub, 'Redis', redis.url, read));
  }
  {
    await using cluster = await startCluster();
    const { admin } = await cluster.nodeOf(CLIENT_ID);
    const read = () => admin.xrevrange(key, '+', '-', 'COUNT', 1);
    results.push(await inRedis(stub, 'Cluster', cluster.url, read));
  }
  return {
    title: 'W16, events found again',
    method: `${number(EVENTS)} events of ${DAYS} days, one in ${LATE} of them late by up to a day, one in ${RECEIPTS} a receipt. Each question is put ${TIMES} times by one caller, for something else each time; a cell is the p95 over HTTP, in milliseconds. The store’s own read is that of one entry.`,
    columns: ['log', 'the store’s own read', ...QUESTIONS.map(({ what }) => what)],
    rows: results.map(({ name, own, each }) => [name, number(own), ...each.map(number)]),
    goals: results.map(({ name, own, each }) => ({
      work: 'W16',
      what: `${name}: slowest p95 over the store’s own`,
      limit: GOAL_MS,
      reached: Math.max(...each) - own,
      unit: ' ms',
    })),
  };
}
