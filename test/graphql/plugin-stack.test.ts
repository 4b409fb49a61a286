import { expect, it } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { SCOPES } from '../../src/auth/caller.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { Rounds } from '../../src/common/rounds.ts';
import { CallerGoneError } from '../../src/common/waiters.ts';
import { EventsGapError } from '../../src/events/errors.ts';
import { DocumentCache } from '../../src/graphql/documents/document-cache.ts';
import type { GraphContext, GraphParts } from '../../src/graphql/plugin-stack.ts';
import { createDrain } from '../../src/graphql/plugins/drain.ts';
import { createQueryDeduplication } from '../../src/graphql/plugins/query-deduplication.ts';
import { createGraph } from '../../src/graphql/yoga.ts';
import type { Context } from '../../src/operation/context.ts';
import { Report } from '../../src/operation/report.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

/**
 * A graph with all of its plugins, whose root fields find out nothing but what `identify` gives.
 *
 * @param made called when the context of an operation is made
 */
function start(identify: () => Promise<unknown>, made: () => void = () => undefined) {
  const log: string[] = [];
  const counted: unknown[] = [];
  const urgencies: unknown[] = [];
  const outcomes: unknown[] = [];
  const drain = createDrain();
  const requester = { caller: 'one', group: 'client c1' };
  const createContext = (_incoming: unknown, urgency: unknown) => {
    urgencies.push(urgency);
    made();
    return {
      requestId: 'r1',
      identity: {
        requester,
        caller: { clientId: 'c1', scopes: SCOPES },
        credential: `Bearer ${urgencies.length}`,
        isStranger: false,
        isIdentified: false,
        isOverSocket: false,
        identify,
        onceIdentified() {},
        doubtIfRefused() {},
      },
      budget: { waiters: undefined, deadline: Date.now() + 60_000 },
      reads: { prefetch() {} },
      report: new Report(),
      // Only these members are used before the caller is identified, who never is.
    } as unknown as Context;
  };
  const metrics = {
    fanOut: { gap: (_gap: unknown, readers: number) => counted.push(['gap', readers]) },
    operationsWaiting: () => undefined,
    operationWaited: () => undefined,
    operationRefused: (full: string) => counted.push(['refused', full]),
    operation: (type: string, outcome: string) => outcomes.push([type, outcome]),
    way: () => undefined,
    // And only these are told of operations that are no streams.
  } as unknown as GraphParts['metrics'];
  const graph = createGraph(
    {
      allowsOrigin: () => false,
      introspection: false,
      upstreamReport: false,
      limits: { tokens: 100, depth: 5, aliases: 5, directives: 5, cost: 100 },
      upstreamCallsPerCaller: 1,
      operationsQueue: 0,
      trustedDocuments: undefined,
      layersOff: new Set(),
    },
    {
      path: '/graphql',
      logger: collectingLogger(log),
      metrics,
      drain,
      shared: createQueryDeduplication(
        () => performance.now(),
        () => undefined,
      ),
      documents: new DocumentCache(1_000_000),
      rounds: new Rounds(systemAlarmClock),
      createContext,
    },
  );
  const ask = async (query: string, accept = 'application/json') => {
    const body = JSON.stringify({ query });
    const headers = { 'content-type': 'application/json', accept };
    // What a transport knows of the request, which the context here is not made from.
    const known = { incoming: { requestId: 'r1' } } as GraphContext;
    return graph.yoga.fetch('http://gateway/graphql', { method: 'POST', headers, body }, known);
  };
  return { ask, log, counted, urgencies, outcomes, drain };
}

const LIMITED = { level: 'warn', message: 'requests are refused, as a limit is reached' };
const DONE = { level: 'debug', message: 'An operation has its result' };
const QUERY = '{ events { pageInfo { hasNextPage } } }';
const SUBSCRIPTION = 'subscription { events { id } }';

it('a stream is as pressing as streams are, and all else as operations', async () => {
  const { ask, urgencies } = start(() => Promise.reject(new UnauthenticatedError('nobody')));
  await ask(QUERY);
  await ask(SUBSCRIPTION, 'text/event-stream');
  expect(urgencies).toEqual(['operations', 'streams']);
});

it.each([
  ['fails in a way that nobody has thought of', new Error('boom'), ['An operation failed unexpectedly']],
  ['ends because its caller has left', new CallerGoneError(), []],
  ['is refused', new UnauthenticatedError('nobody'), []],
])('of an operation that %s the operator is told what there is to mend', async (_what, error, told) => {
  const { ask, log } = start(() => Promise.reject(error));
  await ask(QUERY);
  await ask(SUBSCRIPTION, 'text/event-stream');
  const lines = log.map((line) => JSON.parse(line)).filter(({ level }) => level !== 'debug');
  expect(lines.map(({ message }) => message)).toEqual([...told, ...told]);
  for (const { requestId, err } of lines)
    expect([requestId, err]).toEqual(['r1', expect.stringMatching('boom')]);
});

it('what a process refuses as it ends is counted like any other operation, and leaves its line', async () => {
  const { ask, log, outcomes, drain } = start(() => Promise.reject(new Error('not asked')));
  await drain.begin();
  expect(await (await ask(QUERY)).json()).toMatchObject({
    errors: [{ extensions: { code: 'DRAINING', requestId: 'r1' } }],
  });
  await ask(SUBSCRIPTION, 'text/event-stream');
  expect(outcomes).toEqual([
    ['query', 'error'],
    ['subscription', 'error'],
  ]);
  expect(log.map((line) => JSON.parse(line))).toMatchObject([
    { ...DONE, requestId: 'r1', type: 'query', code: 'DRAINING' },
  ]);
});

it('a gap that is told instead of a result counts once, as one reader’s', async () => {
  const gap = new EventsGapError({ oldest: 'a', head: 'b' }, { clientId: 'c1', reason: 'trimmed' });
  const { ask, counted } = start(() => Promise.reject(gap));
  await ask(SUBSCRIPTION, 'text/event-stream');
  expect(counted).toEqual([['gap', 1]]);
});

it('an operation that is refused for its caller’s others is counted as refused, once, and the log says whose it is, and by the request what was full', async () => {
  const held = Promise.withResolvers<never>();
  let asked = 0;
  const { ask, counted, log } = start(() => {
    asked += 1;
    return held.promise;
  });
  const first = ask(QUERY);
  await until(() => asked === 1);
  expect((await ask(QUERY)).status).toBe(429);
  expect(counted).toEqual([['refused', 'queue']]);
  const warned = log.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
  const line = { ...LIMITED, limit: 'operations', full: 'queue', of: 'client', clientId: 'c1', refused: 1 };
  expect(warned).toEqual([line]);
  const done = log.map((line) => JSON.parse(line)).filter(({ level }) => level === 'debug');
  expect(done).toMatchObject([{ ...DONE, requestId: 'r1', code: 'RATE_LIMITED', full: 'queue' }]);
  held.reject(new UnauthenticatedError('nobody'));
  await first;
  expect(counted).toHaveLength(1);
});

it('a request that fails before there is an operation tells its caller nothing, and the operator why', async () => {
  const { ask, log } = start(
    () => Promise.reject(new UnauthenticatedError('nobody')),
    () => {
      throw new Error('secret');
    },
  );
  const answer = await (await ask(QUERY)).text();
  expect(answer).toContain('INTERNAL');
  expect(answer).not.toContain('secret');
  expect(log.map((line) => JSON.parse(line))).toEqual([
    { level: 'error', message: 'A request failed unexpectedly', err: expect.stringContaining('secret') },
    {
      level: 'debug',
      message: 'A request was refused before its operation began',
      code: 'INTERNAL',
      requestId: 'r1',
    },
  ]);
});
