import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { gatherMovements, lookAtBalances } from '../../../src/cli/reconcile/gather.ts';
import { programOf } from '../../helpers/entry.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { folder as pathOf } from '../../helpers/packages.ts';
import { DISK_ORDER } from '../disk-order.ts';
import { pasarela, unread } from '../run.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const ACCOUNT = { id: 'a1', clabe: '646180157000000004', instrumentId: 'i1' };

const at = (ms: number): string => new Date(ms).toISOString();

/** What a graph has. */
interface Graph {
  readonly balance?: string;
  readonly credits?: readonly { readonly amount: string; readonly at: number }[];
  readonly payments?: readonly GraphPayment[];
  /** What a read of a refund's transaction fails with; undefined where it is not known. */
  readonly refundFails?: string;
  /** Whether a time of the first credit cannot be read. */
  readonly isTimeUnread?: boolean;
  /** Whether its log no longer has what follows a place. */
  readonly isGap?: boolean;
}

/** Paid out of the account; of unknown outcome where it does not say when it was done. */
interface GraphPayment {
  /** Null for a refund whose request has named none. */
  readonly amount: string | null;
  readonly askedAt: number;
  readonly doneAt?: number;
}

const paymentNode = ({ amount, askedAt, doneAt }: GraphPayment) => ({
  id: 'p1',
  operation: amount === null ? 'REFUND' : 'MONEY_OUT',
  state: doneAt === undefined ? 'UNKNOWN' : 'DONE',
  amount: amount === null ? null : { amount },
  sourceInstrumentId: amount === null ? null : ACCOUNT.instrumentId,
  destinationInstrumentId: amount === null ? null : 'elsewhere',
  sentAt: at(askedAt),
  settledAt: doneAt === undefined ? null : at(doneAt),
});

/** Answers what the comparison of balances asks of a graph. */
async function answer(
  { balance = '0.00', credits = [], payments = [], refundFails, isTimeUnread = false, isGap = false }: Graph,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { query, variables } = JSON.parse(await text(request));
  if (isGap && query.includes('events(')) {
    const extensions = { code: 'EVENTS_GAP', oldest: 'c1', head: 'c3' };
    json(response, { data: null, errors: [{ message: 'Events are missing.', extensions }] });
    return;
  }
  const listOf = (nodes: readonly object[]) => ({
    list: { nodes, pageInfo: { hasNextPage: false, endCursor: null } },
  });
  const data = () => {
    if (query.includes('eventCursor')) return { eventCursor: 'c3' };
    if (query.includes('accounts(')) {
      return { client: listOf([{ ...ACCOUNT, availableBalance: { amount: balance } }]) };
    }
    if (query.includes('events(')) {
      return listOf(
        credits.map((credit) => ({
          amount: { amount: credit.amount },
          decision: 'ACCEPTED',
          rawSubCategory: 'SPEI_CREDIT',
          receivedAt: at(credit.at),
          registeredAt: null,
          transactionDate: null,
          beneficiary: { account: ACCOUNT.clabe },
        })),
      );
    }
    if (query.includes('transaction {')) return { node: { transaction: null } };
    if (query.includes('node(')) return { node: payments.map(paymentNode)[0] ?? null };
    const { from, states } = variables;
    return listOf(
      payments
        .filter(({ askedAt }) => from === undefined || askedAt >= Date.parse(from))
        .map(paymentNode)
        .filter(({ state }) => states === undefined || states.includes(state)),
    );
  };
  const isFailing = refundFails !== undefined && query.includes('transaction {');
  const isUnread = isTimeUnread && query.includes('events(');
  const path = isUnread ? ['list', 'nodes', 0, 'registeredAt'] : undefined;
  const code = isUnread ? 'UPSTREAM_INVALID' : refundFails;
  const errors = [{ message: 'failed', path, extensions: { code } }];
  json(response, { data: data(), ...((isFailing || isUnread) && { errors }) });
}

it('a payment that was asked for up to a day before the first reading, and was done after it, is known', async () => {
  const now = Date.now();
  const payments = [{ amount: '12.34', askedAt: now - 23 * HOUR, doneAt: now + HOUR }];
  await using graph = await startUpstream((request, response) => {
    void answer({ payments }, request, response);
  });
  const baseline = { from: now, to: now, balances: { [ACCOUNT.id]: 0 } };
  const { movements } = await gatherMovements(
    { url: graph.url, token: { renews: false, get: async () => 'token' } },
    [ACCOUNT],
    { baseline, cursors: ['c1', 'c2'], open: [] },
    SECOND,
  );
  expect(movements).toEqual([
    { account: 'a1', cents: -1_234, from: now - 23 * HOUR, to: now + HOUR, isCertain: true },
  ]);
});

it('a credit with a time that cannot be read is compared by the time of its receipt', async () => {
  const now = Date.now();
  const credits = [{ amount: '12.34', at: now + HOUR }];
  await using graph = await startUpstream((request, response) => {
    void answer({ credits, isTimeUnread: true }, request, response);
  });
  const baseline = { from: now, to: now, balances: { [ACCOUNT.id]: 0 } };
  const { movements } = await gatherMovements(
    { url: graph.url, token: { renews: false, get: async () => 'token' } },
    [ACCOUNT],
    { baseline, cursors: ['c1', 'c2'], open: [] },
    SECOND,
  );
  expect(movements).toEqual([
    { account: 'a1', cents: 1_234, from: now + HOUR, to: now + HOUR, isCertain: true },
  ]);
});

it('balances that a gateway has kept since before the place in the log was noted are read again', async () => {
  // Twice the first page is one that was read before the place was noted; the second one is always read for the command.
  const KEPT = 2;
  const begun = performance.now();
  const asked: number[] = [];
  await using graph = await startUpstream(async (request, response) => {
    const { query, variables } = JSON.parse(await text(request));
    if (query.includes('eventCursor')) {
      json(response, { data: { eventCursor: 'c1' } });
      return;
    }
    const isFirst = variables.after === undefined;
    if (isFirst) asked.push(performance.now());
    const isKept = isFirst && asked.length <= KEPT;
    const balance = isFirst ? `${asked.length}.00` : '9.00';
    const nodes = [{ ...ACCOUNT, id: isFirst ? 'a1' : 'a2', availableBalance: { amount: balance } }];
    const list = { nodes, pageInfo: { hasNextPage: isFirst, endCursor: 'next' } };
    const calls = [
      { began: -60_000, identifies: true },
      { began: isKept ? begun - performance.now() - 1 : 0.4, identifies: false },
    ];
    json(response, { data: { client: { list } }, extensions: { upstream: calls } });
  });
  const client = { url: graph.url, token: { renews: false, get: async () => 'token' } };
  const { reading } = await lookAtBalances(client, 100);
  expect(reading.balances).toEqual({ a1: 300, a2: 900 });
  expect(asked[0] ?? 0).toBeGreaterThanOrEqual(begun + 100);
});

it('the place in the log is noted before the balances are read: what comes meanwhile is compared the next time', async () => {
  let events = 0;
  await using graph = await startUpstream(async (request, response) => {
    const { query } = JSON.parse(await text(request));
    if (query.includes('eventCursor')) {
      json(response, { data: { eventCursor: `c${events}` } });
      return;
    }
    // A credit arrives while the balances are on their way: it is in none of them.
    events += 1;
    const nodes = [{ ...ACCOUNT, availableBalance: { amount: '100.00' } }];
    const list = { nodes, pageInfo: { hasNextPage: false, endCursor: null } };
    json(response, { data: { client: { list } } });
  });
  const client = { url: graph.url, token: { renews: false, get: async () => 'token' } };
  for (const cursor of ['c0', 'c1']) {
    expect(await lookAtBalances(client, 0)).toMatchObject({ cursor, reading: { balances: { a1: 10_000 } } });
  }
});

it('each page of the payments is asked for by what the first one was', async () => {
  const asked: { after?: string; from?: string; states?: readonly string[] }[] = [];
  await using graph = await startUpstream(async (request, response) => {
    const { query, variables } = JSON.parse(await text(request));
    const isOfPayments = query.includes('payments(');
    if (isOfPayments) asked.push(variables);
    const hasNextPage = isOfPayments && variables.after === undefined;
    const pageInfo = { hasNextPage, endCursor: hasNextPage ? 'next' : null };
    json(response, { data: { list: { nodes: [], pageInfo } } });
  });
  const now = Date.now();
  await gatherMovements(
    { url: graph.url, token: { renews: false, get: async () => 'token' } },
    [ACCOUNT],
    { baseline: { from: now, to: now, balances: {} }, cursors: ['c1', 'c2'], open: [] },
    SECOND,
  );
  const recent = { from: at(now - 24 * HOUR) };
  const open = { states: ['UNKNOWN', 'IN_FLIGHT'] };
  expect(asked).toEqual([recent, { ...recent, after: 'next' }, open, { ...open, after: 'next' }]);
});

it('of a day with thousands of refunds those are asked for that may have moved since, a few at a time', async () => {
  const now = Date.now();
  const refunds = Array.from({ length: 40 }, (_, index) => ({
    ...paymentNode({ amount: null, askedAt: now - HOUR, doneAt: index < 30 ? now + HOUR : now - HOUR }),
    id: `p${index}`,
  }));
  let underWay = 0;
  let most = 0;
  let reads = 0;
  await using graph = await startUpstream(async (request, response) => {
    const { query, variables } = JSON.parse(await text(request));
    const pageInfo = { hasNextPage: false, endCursor: null };
    if (!query.includes('transaction {')) {
      const nodes = query.includes('payments(') && variables.states === undefined ? refunds : [];
      json(response, { data: { list: { nodes, pageInfo } } });
      return;
    }
    reads += 1;
    underWay += 1;
    most = Math.max(most, underWay);
    await setTimeout(20);
    underWay -= 1;
    const source = { instrumentId: ACCOUNT.instrumentId };
    json(response, { data: { node: { transaction: { amount: { amount: '1.00' }, source } } } });
  });
  const { movements, amountUnknown } = await gatherMovements(
    { url: graph.url, token: { renews: false, get: async () => 'token' } },
    [ACCOUNT],
    { baseline: { from: now, to: now, balances: { a1: 0 } }, cursors: ['c1', 'c2'], open: [] },
    SECOND,
  );
  expect({ movements: movements.length, amountUnknown, reads }).toEqual({
    movements: 30,
    amountUnknown: [],
    reads: 30,
  });
  expect(most).toBeLessThanOrEqual(8);
});

/** A graph that a test changes, the file that keeps its readings, and the command that reads it. */
async function aGraph(cleanup: AsyncDisposableStack) {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-times-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  let shown: Graph = {};
  const graph = await startUpstream((request, response) => {
    void answer(shown, request, response);
  });
  cleanup.use(graph);
  return {
    show(now: Graph): void {
      shown = now;
    },
    async run(margin = '0') {
      const args = ['reconcile', '--url', graph.url, '--state', join(folder, 'state.json'), '--json'];
      const { code, stdout, stderr } = await pasarela([...args, '--margin', margin], {
        PASARELA_TOKEN: 'token',
      });
      const lines = stdout.split('\n').filter((line) => line !== '');
      return { code, told: lines.map((line) => JSON.parse(line)), stderr };
    },
  };
}

it('a payment that was open at the first reading explains what it moves, however long ago it was asked for', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { show, run } = await aGraph(cleanup);
  const payment = { amount: '12.34', askedAt: Date.now() - 48 * HOUR };
  const nothing = { code: 0, told: [], stderr: '' };
  show({ balance: '100.00', payments: [payment] });
  expect(await run()).toEqual(nothing);
  show({ balance: '87.66', payments: [{ ...payment, doneAt: Date.now() }] });
  for (const _time of ['second', 'third', 'fourth']) expect(await run()).toEqual(nothing);
});

it('so does one that was done just before that reading by the gateway’s clock, as that may go behind', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { show, run } = await aGraph(cleanup);
  const payment = { amount: '12.34', askedAt: Date.now() - 48 * HOUR };
  const nothing = { code: 0, told: [], stderr: '' };
  show({ balance: '100.00', payments: [payment] });
  expect(await run('2')).toEqual(nothing);
  show({ balance: '87.66', payments: [{ ...payment, doneAt: Date.now() - SECOND }] });
  for (const _time of ['second', 'third', 'fourth']) expect(await run('2')).toEqual(nothing);
});

it('the first run reads what is open before the balances, as what is settled by then is in them', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-first-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const asked: string[] = [];
  const graph = await startUpstream(async (request, response) => {
    const { query } = JSON.parse(await text(request));
    const [name = ''] = /payments|eventCursor|accounts/.exec(query) ?? [];
    asked.push(name);
    const list = { nodes: [], pageInfo: { hasNextPage: false, endCursor: null } };
    json(response, { data: { client: { list }, eventCursor: 'c1' } });
  });
  cleanup.use(graph);
  const args = ['reconcile', '--url', graph.url, '--state', join(folder, 'state.json'), '--margin', '0'];
  expect(await pasarela(args, { PASARELA_TOKEN: 'token' })).toMatchObject({ code: 0 });
  expect(asked).toEqual(['payments', 'eventCursor', 'accounts']);
});

it('a payment whose amount is not known is told, and hides no difference', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { show, run } = await aGraph(cleanup);
  const payments = [{ amount: null, askedAt: Date.now() - HOUR }];
  show({ balance: '100.00', payments });
  expect(await run()).toEqual({ code: 0, told: [], stderr: '' });
  const unknown = expect.stringContaining('amount unknown: p1');
  expect(await run()).toEqual({ code: 0, told: [], stderr: unknown });
  show({ balance: '87.66', payments });
  expect(await run()).toEqual({ code: 0, told: [], stderr: unknown });
  expect(await run()).toEqual({
    code: 1,
    told: [expect.objectContaining({ amount: '-12.34', amountUnknown: ['p1'] })],
    stderr: unknown,
  });
});

it('a refund that the service does not show now keeps no balance from being compared', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { show, run } = await aGraph(cleanup);
  const payments = [{ amount: null, askedAt: Date.now() - HOUR }];
  show({ balance: '100.00', payments, refundFails: 'UPSTREAM_UNAVAILABLE' });
  expect(await run()).toMatchObject({ code: 0 });
  const unknown = expect.stringContaining('amount unknown: p1');
  expect(await run()).toEqual({ code: 0, told: [], stderr: unknown });
  show({ balance: '100.00', payments, refundFails: 'RATE_LIMITED' });
  expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('RATE_LIMITED') });
});

it('the margin is a number of seconds', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-margin-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const earlier = Date.now() - HOUR;
  // By the gateway's clock the credit came two seconds after the reading that shows it. What has moved since then is not known.
  const credits = [{ amount: '10.00', at: earlier + 2 * SECOND }];
  const graph = await startUpstream((request, response) => {
    void answer({ balance: '115.00', credits }, request, response);
  });
  cleanup.use(graph);
  const state = join(folder, 'state.json');
  const run = async (...margin: string[]) => {
    const reading = (time: number, cents: number) => ({ from: time, to: time, balances: { a1: cents } });
    const kept = {
      baseline: reading(earlier - HOUR, 10_000),
      previous: reading(earlier, 11_000),
      cursors: ['c1', 'c2'],
      open: [],
    };
    await writeFile(state, JSON.stringify(kept));
    const args = ['reconcile', '--url', graph.url, '--state', state, '--json', ...margin];
    const { code, stdout } = await pasarela(args, { PASARELA_TOKEN: 'token' });
    return { code, told: stdout === '' ? undefined : JSON.parse(stdout).amount };
  };
  const explained = { code: 0, told: undefined };
  expect(await run()).toEqual(explained);
  expect(await run('--margin', '3')).toEqual(explained);
  expect(await run('--margin', '1')).toEqual({ code: 1, told: '+10.00' });
});

it('readings from which on the record no longer holds all payments are not compared with', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-old-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const graph = await startUpstream((request, response) => {
    void answer({ balance: '90.00' }, request, response);
  });
  cleanup.use(graph);
  const state = join(folder, 'state.json');
  const reading = (time: number, cents: number) => ({ from: time, to: time, balances: { a1: cents } });
  const days = (count: number) => Date.now() - count * 24 * HOUR;
  const kept = { baseline: reading(days(31), 10_000), previous: reading(days(1), 9_000) };
  await writeFile(state, JSON.stringify({ ...kept, cursors: ['c1', 'c2'], open: [] }));
  const args = ['reconcile', '--url', graph.url, '--state', state, '--json', '--margin', '0'];
  const { code, stdout, stderr } = await pasarela(args, { PASARELA_TOKEN: 'token' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain(`Delete it to begin anew.`);
});

it('says which file to delete where the log no longer has what follows the earlier readings', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-gap-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const graph = await startUpstream((request, response) => {
    void answer({ isGap: true }, request, response);
  });
  cleanup.use(graph);
  const state = join(folder, 'state.json');
  const run = () =>
    pasarela(['reconcile', '--url', graph.url, '--state', state, '--margin', '0'], {
      PASARELA_TOKEN: 'token',
    });
  expect(await run()).toMatchObject({ code: 0 });
  const told = `EVENTS_GAP: Events are missing. Delete ${state} to begin anew.\n`;
  expect(await run()).toEqual({ code: 1, stdout: '', stderr: told });
});

it('leaves alone what another run on the same file is writing beside it', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-both-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const graph = await startUpstream((request, response) => {
    void answer({ balance: '110.00' }, request, response);
  });
  cleanup.use(graph);
  const state = join(folder, 'state.json');
  const others = `${state}.next`;
  await writeFile(others, 'half');
  const args = ['reconcile', '--url', graph.url, '--state', state, '--margin', '0'];
  expect(await pasarela(args, { PASARELA_TOKEN: 'token' })).toMatchObject({ code: 0, stderr: '' });
  expect(await readFile(others, 'utf8')).toBe('half');
  expect(await readdir(folder)).toEqual(['state.json', 'state.json.next']);
  expect((await stat(state)).mode & 0o077).toBe(0);
});

/** A graph that shows ten pesos more than is known, and the file of two earlier readings. */
async function withDifference(cleanup: AsyncDisposableStack) {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-full-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const graph = await startUpstream((request, response) => {
    void answer({ balance: '110.00' }, request, response);
  });
  cleanup.use(graph);
  const state = join(folder, 'state.json');
  const reading = (time: number, cents: number) => ({ from: time, to: time, balances: { a1: cents } });
  const [baseline, previous] = [reading(Date.now() - 2 * HOUR, 10_000), reading(Date.now() - HOUR, 11_000)];
  await writeFile(state, JSON.stringify({ baseline, previous, cursors: ['c1', 'c2'], open: [] }));
  return { folder, args: ['reconcile', '--url', graph.url, '--state', state, '--json', '--margin', '0'] };
}

/** Runs the command with a file as its standard output, and tells in which order it writes. @returns how it has ended */
async function tellingInto(file: string, args: readonly string[], order: string) {
  await using output = await open(file, 'a');
  const [program = '', ...first] = programOf('src/cli/pasarela.ts');
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, ['--import', DISK_ORDER, pathOf(program), ...first, ...args], {
    env: { PATH, PASARELA_TOKEN: 'token', DISK_ORDER: order },
    stdio: ['ignore', output.fd, 'ignore'],
  });
  return once(child, 'exit');
}

it('a reading is kept once the disk has the differences, where they go into a file', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder, args } = await withDifference(cleanup);
  const order = join(folder, 'order');
  expect(await tellingInto(join(folder, 'differences'), args, order)).toEqual([1, null]);
  expect(await readFile(order, 'utf8')).toBe('output sync place');
});

/** Tells the difference of {@link withDifference}, as one that is told for the first time. */
async function isTold(args: readonly string[]): Promise<void> {
  const { code, stdout } = await pasarela(args, { PASARELA_TOKEN: 'token' });
  expect({ code, told: stdout === '' ? undefined : JSON.parse(stdout).amount }).toEqual({
    code: 1,
    told: '+10.00',
  });
}

it('a difference that could not be written is told by the next run', {
  skip: !existsSync('/dev/full'),
}, async () => {
  await using cleanup = new AsyncDisposableStack();
  const { folder, args } = await withDifference(cleanup);
  expect(await tellingInto('/dev/full', args, join(folder, 'order'))).toEqual([1, null]);
  await isTold(args);
});

it('a difference that nobody has read is told by the next run, also of one that goes on reading', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { args } = await withDifference(cleanup);
  for (const more of [[], ['--every', '3600']])
    expect(await unread([...args, ...more], { PASARELA_TOKEN: 'token' })).toBe(1);
  await isTold(args);
});
