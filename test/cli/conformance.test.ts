import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES, type Case, type Transport } from '../../src/cli/conformance/case.ts';
import { play } from '../../src/cli/conformance/play.ts';
import { readPage } from '../docs/pages.ts';
import { type Alterations, startAltered } from '../helpers/altered-gateway.ts';
import { steppedClock } from '../helpers/clock.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { pasarela, unread } from './run.ts';

let gateway: RunningGateway;
let environment: Record<string, string>;
beforeAll(async () => {
  gateway = await startGateway();
  environment = { PASARELA_TOKEN: gateway.sandbox.accessToken };
});
afterAll(() => gateway.stop());

/** Lets the log hold what the cases need. */
let filled: Promise<void> | undefined;
const fill = (): Promise<void> => {
  filled ??= (async () => {
    const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
    for (const amount of ['1.00', '2.00', '3.00', '4.00'])
      await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount });
  })();
  return filled;
};

const conformance = (...args: string[]) => pasarela(['conformance', ...args], environment);

describe('pasarela conformance on an empty log', () => {
  it('says what it could not try on an empty log', async () => {
    const { code, stdout } = await conformance(gateway.graphql, '--case', 'Last-Event-ID');
    expect(stdout).toContain('# SKIP the log holds fewer than two events');
    expect(stdout).toContain('0 kept, 0 broken, 1 not tried.');
    expect(code).toBe(0);
  });
});

describe('pasarela conformance', () => {
  beforeAll(fill);

  it('finds that the gateway keeps every rule, over both transports', async () => {
    const { code, stdout } = await conformance(gateway.graphql);
    expect(stdout).toMatch(/^\d+ kept, 0 broken, 0 not tried\.$/m);
    expect(code).toBe(0);
    const json = await conformance(gateway.graphql, '--json', '--transport', 'websocket');
    const found: { is: string; transport: string }[] = JSON.parse(json.stdout);
    expect(found).toHaveLength(
      CASES.filter(({ slow, transports }) => !slow && transports.includes('websocket')).length,
    );
    expect(new Set(found.map(({ is, transport }) => `${is} ${transport}`))).toEqual(
      new Set(['kept websocket']),
    );
  });

  it('ends with 1, and says what came, where a rule is broken, or nobody answers', async () => {
    await using altered = await startAltered(gateway.graphql, { closes: () => 1000 });
    const { code, stdout } = await conformance(altered.graphql, '--case', 'token is not accepted');
    expect(stdout).toContain('ok 1 - sse: tells a stream whose token is not accepted (T6)');
    expect(stdout).toContain('not ok 2 - websocket: closes a socket whose token is not accepted (T6)');
    expect(stdout).toContain('the gateway says {"kind":"closed","code":1000}');
    expect(code).toBe(1);
    const nobody = await conformance('http://127.0.0.1:9/graphql', '--case', 'answers a query');
    expect(nobody.stdout).toContain('ECONNREFUSED');
    expect(nobody.code).toBe(1);
  });

  it('ends with 1 where a rule is broken also where nobody reads what it prints', async () => {
    const args = ['conformance', 'http://127.0.0.1:9/graphql', '--case', 'answers a query'];
    expect(await unread(args, environment)).toBe(1);
  });

  it.each([
    [[], 'wants the address of one graph'],
    [['127.0.0.1:4000'], 'got "127.0.0.1:4000", wants the address of a graph'],
    [['http://127.0.0.1/graphql', '--transport', 'mqtt'], '--transport got "mqtt"'],
    [['http://127.0.0.1/graphql', '--case', 'nothing of it'], 'no case has "nothing of it" in its name'],
  ])('ends with 2 and a reason for %j', async (args, reason) => {
    const { code, stderr } = await conformance(...args);
    expect(stderr).toContain(reason);
    expect(code).toBe(2);
  });
});

interface Mutant extends Alterations {
  readonly rule: string;
  /** The case that shows it. */
  readonly shownBy: string;
  readonly over: Transport;
  readonly found: string;
  /** Its patience is needed: what it waits for comes by the clock. */
  readonly waits?: true;
}

const NOTHING = 'nothing came in time';
const isBookmark = (block: string): boolean => /^id: .*$/.test(block);
const isEvent = (block: string): boolean => block.includes('"cursor"');
const FROM_HEAD = 'streams from eventCursor, and from each bookmark';
const FROM_PAGE = 'goes on after an event of a page, in the order of the log, and is live after the old ones';

/** A gateway that breaks a rule, in which case that shows, and as what. */
const MUTANTS: readonly Mutant[] = [
  {
    rule: 'S1',
    shownBy: 'answers a query',
    over: 'sse',
    answer: () => ({ data: {} }),
    found: 'data.eventCursor is missing',
  },
  {
    rule: 'S2',
    shownBy: 'answers a query over a socket',
    over: 'websocket',
    answer: () => ({ data: {} }),
    found: 'data.eventCursor is missing',
  },
  {
    rule: 'S2',
    shownBy: 'ends a socket without connection_init after 3 s',
    over: 'websocket',
    closes: () => 1000,
    found: '"code":1000',
  },
  {
    rule: 'S2',
    shownBy: 'takes no operation before connection_init',
    over: 'websocket',
    closes: () => 1000,
    found: '"code":1000',
  },
  { rule: 'S3', shownBy: FROM_HEAD, over: 'sse', streamType: 'application/json', found: 'and no stream' },
  {
    rule: 'C4',
    shownBy: FROM_HEAD,
    over: 'sse',
    answer: () => ({ data: { eventCursor: 'of another log' } }),
    found: 'CURSOR_INVALID',
  },
  {
    rule: 'B2',
    shownBy: FROM_HEAD,
    over: 'sse',
    block: (block) => (isBookmark(block) ? [`: ${block}`] : [block]),
    found: NOTHING,
  },
  {
    rule: 'B3',
    shownBy: `${FROM_HEAD}, over a socket`,
    over: 'websocket',
    message: (message) => (message.type === 'ping' ? [] : [message]),
    found: NOTHING,
  },
  {
    rule: 'B1',
    shownBy: `${FROM_HEAD}, over a socket`,
    over: 'websocket',
    message: (message) =>
      message.payload?.bookmarks === undefined
        ? [message]
        : [{ ...message, payload: { bookmarks: { another: 'x' } } }],
    found: NOTHING,
  },
  {
    rule: 'B3',
    shownBy: FROM_PAGE,
    over: 'sse',
    block: (block) => (isEvent(block) ? ['id: early', block] : [block]),
    found: '"kind":"bookmark"',
  },
  {
    rule: 'C2',
    shownBy: FROM_PAGE,
    over: 'sse',
    block: (block) => (isEvent(block) ? [block, block] : [block]),
    found: '"kind":"next"',
  },
  {
    rule: 'C5',
    shownBy: FROM_PAGE,
    over: 'websocket',
    message: (message) => (message.payload?.data?.events?.id === undefined ? [message] : []),
    found: '"kind":"bookmark"',
  },
  {
    rule: 'C5',
    shownBy: 'refuses the cursor of another list',
    over: 'websocket',
    answer: (answer) => ({ data: answer.data ?? { events: { nodes: [] } } }),
    found: '"result":{"data":',
  },
  {
    rule: 'R2',
    shownBy: 'takes Last-Event-ID before the variable after',
    over: 'sse',
    drops: 'last-event-id',
    found: '"kind":"bookmark"',
  },
  {
    rule: 'R4',
    shownBy: 'refuses a cursor that is not one of this log, in a last result',
    over: 'sse',
    block: (block) => [block.replace('CURSOR_INVALID', 'BAD_USER_INPUT')],
    found: 'BAD_USER_INPUT',
  },
  {
    rule: 'S5',
    shownBy: 'refuses a cursor that is not one of this log, in a last result',
    over: 'websocket',
    message: (message) => (message.type === 'complete' ? [] : [message]),
    found: NOTHING,
  },
  {
    rule: 'S5',
    shownBy: 'tells of a document that may not run in a message of its own, and keeps the socket',
    over: 'websocket',
    message: ({ type, payload, ...message }) => [
      type === 'error'
        ? { ...message, type: 'next', payload: { errors: payload } }
        : { ...message, type, payload },
    ],
    found: '"kind":"next"',
  },
  {
    rule: 'S4',
    shownBy: 'carries 20 operations on a socket',
    over: 'websocket',
    message: (message) => {
      if (message.payload?.bookmarks === undefined) return [message];
      const { 20: _last, ...bookmarks } = message.payload.bookmarks;
      return [{ ...message, payload: { bookmarks } }];
    },
    found: NOTHING,
  },
  {
    rule: 'S4',
    shownBy: 'ends a socket over a message of more than 64 KiB',
    over: 'websocket',
    closes: () => 1011,
    found: '"code":1011',
  },
  {
    rule: 'K2',
    shownBy: 'answers a ping with the same payload',
    over: 'websocket',
    message: (message) => [message.type === 'pong' ? { type: 'pong' } : message],
    found: '"kind":"pong"',
  },
  {
    rule: 'T6',
    shownBy: 'tells a stream whose token is not accepted',
    over: 'sse',
    block: (block) => [block.replace('UNAUTHENTICATED', 'FORBIDDEN')],
    found: 'FORBIDDEN',
  },
  {
    rule: 'T6',
    shownBy: 'closes a socket whose token is not accepted',
    over: 'websocket',
    closes: () => 1000,
    found: '"code":1000',
  },
  {
    rule: 'T1',
    shownBy: 'takes no other token on a socket: a second connection_init ends it',
    over: 'websocket',
    closes: () => 1000,
    found: '"code":1000',
  },
  {
    rule: 'P12',
    shownBy: 'knows nothing of a payment’s key that nobody has used',
    over: 'sse',
    answer: () => ({ data: { payment: { operation: 'CREATE_MONEY_OUT' } } }),
    found: 'data.payment is {',
  },
  {
    rule: 'K3',
    shownBy: 'sends a comment at once, and another within 12 s',
    over: 'sse',
    block: (block) => (block.startsWith(':') ? [] : [block]),
    found: NOTHING,
    waits: true,
  },
  {
    rule: 'K1',
    shownBy: 'sends a ping frame within 12 s',
    over: 'websocket',
    beats: false,
    found: NOTHING,
    waits: true,
  },
];

const within = (one: Case, withinMs: number): Case => ({
  ...one,
  script: one.script.map((step) => ('withinMs' in step ? { ...step, withinMs } : step)),
});
/** What a mutant does not do is waited for less long than what a gateway has to do. */
const impatient = (one: Case): Case => within(one, 1_500);
/** What a mutant does otherwise may come late, on a machine that stands still. */
const patient = (one: Case): Case => within(one, 60_000);

const caseOf = (name: string): Case => {
  const found = CASES.find((one) => one.name === name);
  if (found === undefined) throw new Error(`There is no case "${name}".`);
  return found;
};

describe('a gateway that breaks a rule', () => {
  beforeAll(fill);

  it.concurrent.for(MUTANTS)('$rule is found out: $shownBy', async (mutant, { expect: be }) => {
    const one = caseOf(mutant.shownBy);
    be(one.rules).toContain(mutant.rule);
    await using altered = await startAltered(gateway.graphql, mutant);
    const { accessToken } = gateway.sandbox;
    const waiting = mutant.waits ? one : impatient(one);
    const tried = mutant.found === NOTHING ? waiting : patient(one);
    be(await play(tried, mutant.over, altered.graphql, accessToken)).toMatchObject({
      is: 'broken',
      why: expect.stringContaining(mutant.found),
    });
  });

  const BOOKMARKS = 'sends another bookmark within 60 s, whatever happens';

  it.concurrent('B4 is found out, and one that keeps it passes', async ({ expect: be }) => {
    const clock = steppedClock();
    await using stepped = await startGateway({ webhooks: false, clock });
    let told = 0;
    const once: Alterations = {
      message: (message) => (message.type === 'ping' && ++told > 1 ? [] : [message]),
    };
    await using altered = await startAltered(stepped.graphql, once);
    let isTried = false;
    const tried = Promise.withResolvers<void>();
    const passing = (async () => {
      // Whoever is woken sleeps again at once: the others have to have their turns in between.
      while (!isTried) await Promise.race([clock.pass(1_200).then(() => pause(5)), tried.promise]);
    })();
    const tryAt = (graphql: string, one: Case) =>
      play(one, 'websocket', graphql, stepped.sandbox.accessToken);
    be(await tryAt(stepped.graphql, caseOf(BOOKMARKS))).toEqual({ is: 'kept' });
    be(await tryAt(altered.graphql, impatient(caseOf(BOOKMARKS)))).toMatchObject({
      is: 'broken',
      why: expect.stringContaining(NOTHING),
    });
    isTried = true;
    tried.resolve();
    await passing;
  });

  it('is found out for every rule that a case names, and by every case', async () => {
    const page = await readPage('PROTOCOL.md');
    const rules = new Set(CASES.flatMap((one) => one.rules));
    for (const rule of rules) expect(page).toContain(`| ${rule} |`);
    expect(new Set([...MUTANTS.map(({ rule }) => rule), 'B4'])).toEqual(rules);
    expect(new Set([...MUTANTS.map(({ shownBy }) => shownBy), BOOKMARKS])).toEqual(
      new Set(CASES.map(({ name }) => name)),
    );
  });
});
