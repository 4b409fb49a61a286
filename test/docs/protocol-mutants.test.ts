import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readCases } from '../../conformance/case.ts';
import { CASES } from '../../src/cli/conformance/case.ts';
import { folder, run } from '../helpers/packages.ts';
import { readPage } from './pages.ts';

interface Mutant {
  readonly rule: string;
  /** The source that breaks the rule, and what is written in the place of what. */
  readonly file: string;
  readonly edits: readonly (readonly [from: string, to: string])[];
  /** The test that holds the rule: its file below `test/`, and its name or the beginning of it. */
  readonly test: string;
  readonly name: string;
  /** What that test says of it. */
  readonly found: string;
}

/**
 * For each rule that no case can try from outside, a gateway or a client that breaks it. `client/conformance.test.ts` and
 * `cli/conformance.test.ts` break each rule that a case tries.
 */
const MUTANTS: readonly Mutant[] = [
  {
    rule: 'C1',
    file: 'src/events/cursor.ts',
    edits: [
      ['    client === clientId &&\n', ''],
      ['encodeCursor(clientId, at) === cursor', "encodeCursor(client ?? '', at) === cursor"],
    ],
    test: 'scenarios/gaps.test.ts',
    name: 'the cursor of another client is CURSOR_INVALID',
    found: 'CURSOR_INVALID',
  },
  {
    rule: 'C3',
    file: 'packages/client/src/follower.ts',
    edits: [
      [
        'if (!(await this.#untilDone(true, () => this.#store.save(next.event, next.cursor)))) return;',
        'void this.#untilDone(true, () => this.#store.save(next.event, next.cursor));',
      ],
    ],
    test: 'client/states.test.ts',
    name: 'nothing is lost, repeated or hidden',
    found: 'Property failed',
  },
  {
    rule: 'C6',
    file: 'src/resolvers/cep.ts',
    edits: [['return next > last ||', 'return next !== last ||']],
    test: 'resolvers/events/cep-status.test.ts',
    name: 'a message that comes late takes nothing back',
    found: '+   "PENDING",',
  },
  {
    rule: 'C7',
    file: 'packages/client/src/follower.ts',
    edits: [
      ["if (typeof cursor !== 'string')", "if (typeof cursor !== 'string' || !('amount' in Object(event)))"],
    ],
    test: 'client/unknown-types.test.ts',
    name: 'keeps the cursor of an event whose type its document does not name',
    found: 'Select the `cursor` of events.',
  },
  {
    rule: 'B6',
    file: 'src/events/sealed-reads.ts',
    edits: [["sealCursor(this.#holder(), cursor, 'fresh')", "sealCursor(this.#holder(), cursor, 'stable')"]],
    test: 'scenarios/bookmarks.test.ts',
    name: 'bookmarks of callers narrowed to a customer tell nothing of others',
    found: 'AssertionError: expected 2 to be 3',
  },
  {
    rule: 'E6',
    file: 'src/events/live/feed.ts',
    edits: [
      [
        '    this.#readAgain = true;\n    this.reachHead()',
        "    for (const one of [...this.#subscribers]) one.fail(new StoreUnavailableError('It was away.'));\n    this.#readAgain = true;\n    this.reachHead()",
      ],
    ],
    test: 'scenarios/redis-outages.test.ts',
    name: 'what arrives while Redis is down is delivered in the order of its arrival',
    found: 'AssertionError',
  },
  {
    rule: 'E7',
    file: 'src/transport/sockets/reader.ts',
    edits: [['results: 256', 'results: 128']],
    test: 'transport/sockets/fan-out.test.ts',
    name: 'is closed once 256 results wait for it',
    found: 'AssertionError: expected true to be false',
  },
  {
    rule: 'T2',
    file: 'src/auth/expiry-watch.ts',
    edits: [
      [
        '      this.#expire(credential, expired());\n      return;',
        '      this.#alarms.set(credential, this.#options.clock.now() + BELIEVED_MS);\n      return;',
      ],
    ],
    test: 'auth/expiry-watch.test.ts',
    name: 'end each at its own time',
    found: 'AssertionError',
  },
  {
    rule: 'T7',
    file: 'src/auth/expiry-watch.ts',
    edits: [
      [
        '    const asking = this.#ask(authorization).finally(',
        '    const asking = Promise.resolve(false).finally(',
      ],
    ],
    test: 'auth/expiry-watch.test.ts',
    name: 'that an operation was refused for',
    found: 'AssertionError',
  },
  {
    rule: 'T5',
    file: 'src/money/intent.ts',
    edits: [
      ['JSON.stringify([clientId, customerId ?? null, key, ...owned])', 'JSON.stringify([clientId, key])'],
    ],
    test: 'scenarios/security/narrowing.test.ts',
    name: 'has keys of its own',
    found: 'AssertionError',
  },
  {
    rule: 'P1',
    file: 'src/money/sqlite/claim.ts',
    edits: [
      [
        "row === undefined || (row['state'] === 'claimed' && free)",
        "row === undefined || row['state'] !== 'sent'",
      ],
    ],
    test: 'money/execute.test.ts',
    name: 'is done once, and replayed to every later call with the key',
    found: 'AssertionError',
  },
  {
    rule: 'P6',
    file: 'src/money/execute.ts',
    edits: [['atDeadline: late.signal', 'atDeadline: waiting']],
    test: 'money/execute.test.ts',
    name: 'goes on when the caller disconnects after the request has left',
    found: 'AssertionError',
  },
  {
    rule: 'P8',
    file: 'packages/client/src/intent-states.ts',
    edits: [['const KNOWN_MS = 29 * DAY_MS', 'const KNOWN_MS = 31 * DAY_MS']],
    test: 'client/pay-interleavings.test.ts',
    name: 'an intent in doubt has a date: 29 days on',
    found: 'AssertionError',
  },
  {
    rule: 'P16',
    file: 'packages/client/src/intent-states.ts',
    edits: [['age > -DAY_MS && ', '']],
    test: 'client/pay-interleavings.test.ts',
    name: 'an intent in doubt has a date: with a clock that was put back, neither',
    found: 'AssertionError',
  },
  {
    rule: 'P13',
    file: 'src/resolvers/outcome.ts',
    edits: [
      [
        'if (!attempt.error.dispatched) throw attempt.error;\n    throw unclear(attempt.error, rules);',
        'throw attempt.error;',
      ],
    ],
    test: 'resolvers/outcome.test.ts',
    name: 'has an unknown outcome after a connection that broke after dispatch',
    found: 'to be an instance of OutcomeUnknown',
  },
];

/** What a test needs of the checkout. */
const COPIED = [
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'src',
  'packages',
  'conformance',
  'test',
];
const isCopied = (path: string): boolean => !/\/(node_modules|dist|test\/e2e)(\/|$)/.test(path);

let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'pasarela-mutant-'));
  for (const path of COPIED)
    cpSync(folder(path), join(copy, path), {
      recursive: true,
      filter: (source) => isCopied(source.slice(folder('').length - 1)),
    });
  symlinkSync(folder('node_modules'), join(copy, 'node_modules'));
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Runs one test in the copy. @returns what is said of it. */
function tested({ test, name }: Mutant): Promise<string> {
  const pattern = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const vitest = folder('node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'integration', `test/${test}`, '-t', pattern, '--bail', '1'];
  // A test of its own, not one more file of the run that this one belongs to.
  const ofThisRun = Object.keys(process.env).filter((variable) => variable.startsWith('VITEST'));
  const environment = Object.fromEntries(ofThisRun.map((variable) => [variable, '']));
  return run(process.execPath, args, copy, {
    ...environment,
    TEST_ENTRY: 'sources',
    CI: '',
    NO_COLOR: '1',
  }).catch(String);
}

it.each(MUTANTS)('$rule is broken, and found out by $test', async (mutant) => {
  const broken = join(copy, mutant.file);
  const source = readFileSync(broken, 'utf8');
  let text = source;
  for (const [from, to] of mutant.edits) {
    expect(text.split(from), from).toHaveLength(2);
    text = text.replace(from, () => to);
  }
  writeFileSync(broken, text);
  try {
    const said = await tested(mutant);
    expect(said).toContain(mutant.name);
    expect(said).toContain(mutant.found);
    expect(said).toMatch(/Tests +1 failed/);
  } finally {
    writeFileSync(broken, source);
  }
});

it('every rule of PROTOCOL.md is broken once, here or by the cases that try clients and gateways', async () => {
  const page = await readPage('PROTOCOL.md');
  const rules = [...page.matchAll(/^\| ([A-Z]\d+) \|.* \| (.*) \|$/gm)];
  const tried = [...CASES, ...(await readCases())].flatMap((one) => one.rules);
  const broken = MUTANTS.map(({ rule }) => rule);
  expect(broken.filter((rule) => tried.includes(rule))).toEqual([]);
  expect(new Set([...tried, ...broken])).toEqual(new Set(rules.map(([, rule]) => rule)));
  const held = new Map(rules.map(([, rule, tests]) => [rule, tests]));
  for (const { rule, test } of MUTANTS) expect(held.get(rule), rule).toContain(`\`${test}\``);
});
