import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GraphQLResolveInfo, isObjectType, Kind, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import type { EventLog } from '../../../src/events/log.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { sealedReads } from '../../../src/events/sealed-reads.ts';
import { LogReading } from '../../../src/operation/log-reading.ts';
import { LogReadingError, TooManyItemsError } from '../../../src/resolvers/errors.ts';
import { eventNames } from '../../../src/resolvers/events/event-names.ts';
import { type EventPageArgs, eventPage } from '../../../src/resolvers/events/event-page.ts';
import { createReceiptOwner } from '../../../src/resolvers/events/receipt-owner.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { moneyIn } from '../../helpers/events.ts';

/** So many events of others are looked through for one page. */
const SCANNED = 5_000;
/** Receipts of which an operation may have the service asked whose they are. */
const OWNERS = 250;
const CLABE = '646180157000000004';

let dataDir: string;
let log: EventLog;
const clientId = randomUUID();
const customerId = randomUUID();
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-page-'));
  log = await openEventLog({
    redisUrl: undefined,
    dataDir,
    retention: 100_000,
    names: eventNames,
    logger: silentLogger,
  });
  await Promise.all(Array.from({ length: SCANNED + 50 }, () => log.append(clientId, ownedBy(randomUUID()))));
  await log.append(clientId, ownedBy(customerId));
  await Promise.all(Array.from({ length: SCANNED + 50 }, () => log.append(clientId, ownedBy(randomUUID()))));
});
afterAll(async () => {
  await log.stop();
  await rm(dataDir, { recursive: true, force: true });
});

function ownedBy(owner: string) {
  const event = moneyIn();
  return { ...event, payload: JSON.stringify({ id_msg: event.id, body: { owner_id: owner } }) };
}

/** What one operation may read; each batch is counted. */
function reading(deadline = Date.now() + 60_000) {
  const counts = { batches: 0 };
  const turn = () => {
    counts.batches += 1;
    return undefined;
  };
  return {
    counts,
    reading: new LogReading({ turn, deadline: () => deadline, signal: new AbortController().signal }),
  };
}

/** A page; credits are told apart without the service. */
const page = (args: EventPageArgs, how: How, from = log) => eventPage(args, contextOf(how, from));

interface How {
  readonly narrowed: boolean;
  readonly reading: LogReading;
}

const contextOf = ({ narrowed, reading }: How, from = log) => ({
  identity: { caller: { clientId, customerId: narrowed ? customerId : undefined } },
  reads: {
    events: narrowed ? sealedReads(from, customerId) : from,
    session: { transactions: { get: async () => null } },
  },
  budget: { signal: new AbortController().signal, log: reading },
  services: {
    receiptOwner: () => {
      throw new Error('a credit names its owner');
    },
  },
});

/** Resolves a field of the graph that leads into the log, beneath a parent of the list. */
async function resolved(type: string, field: string, budget: object): Promise<unknown> {
  const schema = buildSchema();
  const parent = schema.getType(type);
  const { resolve, type: returnType } = (isObjectType(parent) && parent.getFields()[field]) || {};
  if (resolve === undefined || returnType === undefined) throw new Error('it is there');
  const { identity, ...context } = contextOf({ narrowed: false, ...reading() });
  const caller = { ...identity.caller, scopes: { has: () => true } };
  const [asked] = parse(`{ ${field} { nodes { ... on MoneyInEvent { transaction { id } } } } }`).definitions;
  const fieldNodes = asked?.kind === Kind.OPERATION_DEFINITION ? asked.selectionSet.selections : [];
  // The resolvers need nothing else of either.
  const info = { schema, returnType, fieldNodes, fragments: {} } as unknown as GraphQLResolveInfo;
  const operation = { ...context, identity: { caller }, budget: { ...context.budget, ...budget } };
  return resolve({ id: randomUUID(), clabeNumber: CLABE }, { first: 3 }, operation, info);
}

it('a page of events counts with what may be read for each, beneath an account and a transaction alike, and one of too much is refused', async () => {
  const named = moneyIn();
  const payload = JSON.stringify({ id_msg: named.id, body: { beneficiary_account: CLABE } });
  await log.append(clientId, { ...named, payload });
  const counted: number[] = [];
  const budget = (maxItems: number) => ({
    maxItems,
    countItems(count: number) {
      counted.push(count);
      return count;
    },
  });
  expect(await resolved('Account', 'moneyIn', budget(2))).toMatchObject({ nodes: [{ id: named.id }] });
  await expect(resolved('Account', 'moneyIn', budget(1))).rejects.toThrow(TooManyItemsError);
  await resolved('Transaction', 'events', budget(0));
  expect(counted).toEqual([2, 2, 0]);
});

it.each(['first', 'last', 'last before another'])(
  'the events of a transaction are also those that bear the id of its validation, of the %s',
  async (end) => {
    const client = randomUUID();
    const [transactionId, validationId] = [randomUUID(), randomUUID()];
    const cep = { ...moneyIn(), type: 'CEP' } as const;
    const body = { id: validationId, cep_status: 'AVAILABLE' };
    await log.append(client, { ...cep, payload: JSON.stringify({ id_msg: cep.id, body }) });
    await log.append(client, moneyIn());
    const asked: string[] = [];
    const get = async (id: string) => {
      asked.push(id);
      return { id, metadata: { dataCep: { validationId } } };
    };
    const known = contextOf({ narrowed: false, ...reading() });
    const context = {
      ...known,
      identity: { caller: { clientId: client, customerId: undefined } },
      reads: { events: log, session: { transactions: { get } } },
      // Of a transaction only its validation is looked at.
    } as unknown as Parameters<typeof eventPage>[1];
    const [last] = (await eventPage({ last: 1 }, context)).nodes;
    const window =
      end === 'first' ? { first: 5 } : { last: 5, before: end === 'last' ? undefined : last?.cursor };
    const { nodes } = await eventPage({ ...window, transactionId }, context);
    expect(nodes.map(({ id }) => id)).toEqual([cep.id]);
    expect(asked).toEqual([transactionId]);
  },
);

describe('a page of a log that is trimmed while it is read', () => {
  /** Reads a page of a log of 300, in which 250 more arrive before the second batch. */
  const readTrimmed = async (ask: (first: string) => EventPageArgs) => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-trimmed-'));
    const small = await openEventLog({
      redisUrl: undefined,
      dataDir: folder,
      retention: 300,
      names: eventNames,
      logger: silentLogger,
    });
    const append = async (count: number, owner = randomUUID()) => {
      for (let made = 0; made < count; made += 1) await small.append(clientId, ownedBy(owner));
    };
    await append(1, customerId);
    const first = await sealedReads(small, customerId).head(clientId);
    await append(299);
    let batches = 0;
    const reading = new LogReading({
      async turn() {
        batches += 1;
        if (batches === 2) {
          await append(249);
          await append(1, customerId);
        }
      },
      deadline: () => Date.now() + 60_000,
      signal: new AbortController().signal,
    });
    try {
      const { nodes, pageInfo } = await page(ask(first), { narrowed: true, reading }, small);
      return { nodes: nodes.length, ...pageInfo };
    } finally {
      await small.stop();
      await rm(folder, { recursive: true, force: true });
    }
  };

  it('is no gap for a caller who has given no cursor', async () => {
    const last = expect.any(String);
    expect(await readTrimmed(() => ({ first: 10 }))).toMatchObject({
      nodes: 1,
      hasNextPage: false,
      endCursor: last,
    });
    // Back from the newest of that moment: its own event has gone meanwhile, and so have all before.
    expect(await readTrimmed(() => ({ last: 10 }))).toMatchObject({ nodes: 0, hasPreviousPage: false });
  });

  it('is one for a caller whose own cursor has been trimmed', async () => {
    await expect(readTrimmed((after) => ({ first: 10, after }))).rejects.toMatchObject({
      code: 'EVENTS_GAP',
    });
  });
});

describe('a page of a narrowed caller', () => {
  it.each([
    ['forward', { first: 1 }],
    ['back', { last: 1 }],
  ])('leads %s to its own event, past any number of others', async (_way, args) => {
    const { nodes, pageInfo } = await page(args, { narrowed: true, ...reading() });
    expect(nodes).toMatchObject([{ type: 'MONEY_IN', ownerId: customerId }]);
    const [{ cursor } = { cursor: '' }] = nodes;
    expect(pageInfo).toEqual({
      hasNextPage: false,
      hasPreviousPage: false,
      startCursor: cursor,
      endCursor: cursor,
    });
    const behind = await page({ first: 1, after: cursor }, { narrowed: true, ...reading() });
    expect(behind).toMatchObject({ nodes: [], pageInfo: { hasNextPage: false, endCursor: null } });
  });

  it('is refused where the operation has read the whole log four times', async () => {
    const how = { narrowed: true, ...reading() };
    for (let time = 0; time < 4; time += 1) expect((await page({ first: 1 }, how)).nodes).toHaveLength(1);
    await expect(page({ first: 1 }, how)).rejects.toThrow(LogReadingError);
    // By a time alone it would read as much.
    const receivedFrom = new Date(0).toISOString();
    await expect(page({ first: 1, receivedFrom }, how)).rejects.toThrow(LogReadingError);
    // Its own credits are found without the others.
    expect((await page({ first: 1, types: ['MONEY_IN'] }, how)).nodes).toHaveLength(1);
    expect((await page({ first: 1, types: ['STATUS_UPDATE'] }, how)).nodes).toEqual([]);
    expect((await page({ first: 1, ownerId: randomUUID() }, how)).nodes).toEqual([]);
  });

  it.each([
    ['forward', 'first', 'hasNextPage'],
    ['back', 'last', 'hasPreviousPage'],
  ] as const)(
    'is answered %s where it is full and the time of the operation is over',
    async (_way, end, more) => {
      let isOver = false;
      const overOnceFound =
        (read: EventLog['readAfter']): EventLog['readAfter'] =>
        async (...how) => {
          const found = await read(...how);
          isOver = found.events.some(({ payload }) => JSON.stringify(payload).includes(customerId));
          return found;
        };
      const hurried: EventLog = Object.assign(Object.create(log), {
        sealKey: (client: string) => log.sealKey(client),
        readAfter: overOnceFound((...how) => log.readAfter(...how)),
        readBefore: overOnceFound((...how) => log.readBefore(...how)),
      });
      const timed = () =>
        new LogReading({
          turn: () => undefined,
          deadline: () => (isOver ? 0 : Number.POSITIVE_INFINITY),
          signal: new AbortController().signal,
        });
      const { nodes, pageInfo } = await page({ [end]: 1 }, { narrowed: true, reading: timed() }, hurried);
      expect(nodes).toMatchObject([{ ownerId: customerId }]);
      const [{ cursor } = { cursor: '' }] = nodes;
      expect(pageInfo).toMatchObject({ [more]: true, startCursor: cursor, endCursor: cursor });
      isOver = false;
      await expect(page({ [end]: 2 }, { narrowed: true, reading: timed() }, hurried)).rejects.toThrow(
        LogReadingError,
      );
    },
  );

  it.each([
    ['forward', 'first', 'hasNextPage', 0],
    ['forward', 'first', 'hasNextPage', OWNERS - 1],
    ['back', 'last', 'hasPreviousPage', 0],
    ['back', 'last', 'hasPreviousPage', OWNERS - 1],
  ] as const)(
    'is answered %s where it is full and no more owners of receipts may be asked for: %s, %s, after %i of others',
    async (_way, end, more, others) => {
      const client = randomUUID();
      const own = randomUUID();
      const ids = Array.from({ length: OWNERS + 10 }, (_, at) => (at === others ? own : randomUUID()));
      for (const id of end === 'first' ? ids : ids.toReversed()) {
        const event = { ...moneyIn(), type: 'CEP' } as const;
        const body = { id, status: 'AVAILABLE' };
        await log.append(client, { ...event, payload: JSON.stringify({ id_msg: event.id, body }) });
      }
      const receipts = (size: number) => {
        const { services: _none, ...context } = contextOf({ narrowed: true, ...reading() });
        const find = async (_party: unknown, _client: string, id: string) => (id === own ? customerId : null);
        return eventPage(
          { [end]: size, types: ['CEP'] },
          {
            ...context,
            identity: { caller: { clientId: client, customerId } },
            services: {
              receiptOwner: createReceiptOwner({ known: () => undefined, find }, 60_000, () => undefined),
            },
          },
        );
      };
      const { nodes, pageInfo } = await receipts(1);
      expect(nodes).toMatchObject([{ type: 'CEP', bodyId: own }]);
      const [{ cursor } = { cursor: '' }] = nodes;
      expect(pageInfo).toMatchObject({ [more]: true, startCursor: cursor, endCursor: cursor });
      const refused = receipts(2);
      await expect(refused).rejects.toThrow(LogReadingError);
      await expect(refused).rejects.toThrow('whose too many receipts are');
    },
  );

  it('is not answered in part where the time of the operation is over', async () => {
    await expect(page({ first: 1 }, { narrowed: true, ...reading(Date.now()) })).rejects.toThrow(
      LogReadingError,
    );
  });
});

describe('pages of a caller who sees the whole log', () => {
  it('share what one operation may look through, and say where to read on', async () => {
    const { counts, reading: shared } = reading();
    const how = { narrowed: false, reading: shared };
    const rare = { types: ['CEP' as const], first: 1 };
    const ends: (string | null)[] = [];
    for (let time = 0; time < 2; time += 1) {
      const { nodes, pageInfo } = await page({ ...rare, after: ends.at(-1) ?? null }, how);
      expect([nodes, pageInfo.hasNextPage]).toEqual([[], true]);
      ends.push(pageInfo.endCursor);
    }
    expect(counts.batches).toBe((2 * SCANNED) / 200);
    await expect(page(rare, how)).rejects.toThrow(LogReadingError);
    // What another operation reads on finds the end.
    const { pageInfo } = await page(
      { ...rare, after: ends.at(-1) ?? null },
      { narrowed: false, ...reading() },
    );
    expect(pageInfo).toMatchObject({ hasNextPage: false, endCursor: null });
  });

  it('count as looked through what a search passes over', async () => {
    const { counts, reading: shared } = reading();
    const passing = Object.assign(Object.create(log), {
      readAfter: async (client: string, cursor: string | null) => ({
        ...(await log.readAfter(client, cursor, 1)),
        hasMore: true,
      }),
    });
    const args = { types: ['CEP' as const], receivedFrom: '2020-01-01T00:00:00Z', first: 1 };
    const { nodes, pageInfo } = await page(args, { narrowed: false, reading: shared }, passing);
    expect([nodes, pageInfo.hasNextPage]).toEqual([[], true]);
    expect(counts.batches).toBe(1 + SCANNED / 200);
  });

  it('count no more than there was to be looked through', async () => {
    const how = { narrowed: false, ...reading() };
    const { startCursor } = (await page({ last: 10 }, how)).pageInfo;
    for (let time = 0; time < 90; time += 1)
      expect(await page({ types: ['CEP'], first: 1, after: startCursor }, how)).toMatchObject({
        nodes: [],
        pageInfo: { hasNextPage: false },
      });
  });

  it('end where reading ended, once the time of the operation is over', async () => {
    let now = 0;
    const shared = new LogReading({
      turn: () => undefined,
      deadline: () => {
        now += 1;
        return Date.now() + (now > 3 ? -1 : 60_000);
      },
      signal: new AbortController().signal,
    });
    const { nodes, pageInfo } = await page({ types: ['CEP'], last: 1 }, { narrowed: false, reading: shared });
    expect([nodes, pageInfo.hasPreviousPage]).toEqual([[], true]);
    expect(pageInfo.startCursor).toEqual(expect.any(String));
  });

  it('read no more than they show where nothing is filtered', async () => {
    const { reading: shared } = reading();
    const how = { narrowed: false, reading: shared };
    for (let time = 0; time < 90; time += 1) {
      expect((await page({ first: 100 }, how)).nodes).toHaveLength(100);
    }
  });
});
