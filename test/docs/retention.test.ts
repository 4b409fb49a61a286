import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { standingOf } from '../../packages/client/src/index.ts';
import { RETENTION_DAYS } from '../../src/money/record.ts';
import { ROOT, readPage } from './pages.ts';

const DAY_MS = 86_400_000;

/** What says to people how long something is kept. CHANGELOG.md and the decisions tell of versions before, bench/results of measurements. */
const TEXTS = [
  ...['*.md', 'docs/**/*.md', 'packages/*/*.md', 'schema.graphql'],
  ...[
    'src/**/*.ts',
    'packages/*/src/**/*.ts',
    'conformance/**/*.{md,ts,py,go}',
    'examples/*/src/**/*.{ts,tsx}',
  ],
];
const isOfBefore = (file: string): boolean => /node_modules|^CHANGELOG\.md$|^docs\/decisions\//.test(file);

/**
 * For how many days an app sends a payment whose intent does not say for how long its key is known. Such a key may be one that a gateway
 * of a shorter time has taken, so this stays as {@link RETENTION_DAYS} grows: CONTRIBUTING.md, "How long a record of a payment is kept".
 */
const APP_DAYS = 29;

/** What tells of records of versions before. It stays true, and so it stays as it is when the days change. */
const OF_BEFORE = [
  '30 days after its answer was stored; a list of `UNKNOWN` alone does not',
  'Records of versions before name no subject. For the 30 days that they are kept',
];

/** Days that have nothing to do with a record of a payment. */
const OTHERS =
  /\b7 days|who meant it 20 days ago|timer takes 24 days|ring after 25 days|JOURNAL_RETENTION, 400 days|^\| `pasarela:money:\{C\}:readings`.*/gm;

/** Each "n days" of the texts, also as it is written in code, with the line that has it; and those of {@link OF_BEFORE} that stand in none. */
async function daysOfTexts() {
  const found: { readonly days: number; readonly at: string }[] = [];
  const unseen = new Set(OF_BEFORE);
  for await (const file of glob(TEXTS, { cwd: fileURLToPath(ROOT) })) {
    if (isOfBefore(file)) continue;
    const page = await readPage(file);
    const before = OF_BEFORE.filter((told) => page.includes(told));
    for (const told of before) unseen.delete(told);
    const now = before.reduce((rest, told) => rest.replace(told, ''), page.replace(OTHERS, ''));
    // A line may end between the number and its word, and the next one begin as a comment.
    for (const { 0: text, 1: days, index } of now.matchAll(
      /\b(\d+)(?: |\n[ \t]*(?:\*|\/\/|#|>)? ?)(?:days?\b|\* 86_400_000)/g,
    ))
      found.push({ days: Number(days), at: `${file}:${now.slice(0, index).split('\n').length}: ${text}` });
  }
  return { found, unseen: [...unseen] };
}

it('the texts say as many days as a record of a payment is kept, and what is kept beside it', async () => {
  // In Redis for the index of transactions; for what both the sending and the answer prolong, and for its lines.
  const [record, index, twice, lines] = [0, 2, RETENTION_DAYS, RETENTION_DAYS + 1].map(
    (more) => RETENTION_DAYS + more,
  );
  const { found, unseen } = await daysOfTexts();
  expect(found.length).toBeGreaterThan(50);
  expect(found.filter(({ days }) => ![APP_DAYS, record, index, twice, lines].includes(days))).toEqual([]);
  expect(unseen).toEqual([]);
});

it('the table of docs/redis.md says for how long each key beside a record is kept', async () => {
  const page = await readPage('docs/redis.md');
  const daysOf = (name: string) =>
    Number(
      page
        .split('\n')
        .find((line) => line.startsWith(`| \`pasarela:money:{C}:${name}\` |`))
        ?.match(/ (\d+) days/)?.[1],
    );
  expect(daysOf('<hash>')).toBe(RETENTION_DAYS);
  for (const name of ['twin:<hash>', 'due', 'payments:<who>:<mutation>:<class>'])
    expect(daysOf(name), name).toBe(2 * RETENTION_DAYS);
  expect(daysOf('transactions:<day>:<part>')).toBe(RETENTION_DAYS + 2);
});

it('the client sends nothing of an intent that does not say how long its key is known, from a day before any gateway may forget it', () => {
  const standing = (ageMs: number) =>
    standingOf({
      ...{ idempotencyKey: 'a key of a test', mutation: 'createMoneyOut', input: {}, unanswered: 0 },
      createdAt: new Date(Date.now() - ageMs).toISOString(),
    });
  const known = APP_DAYS * DAY_MS;
  expect(APP_DAYS).toBeLessThan(RETENTION_DAYS);
  expect([standing(known - 60_000), standing(known + 60_000)]).toEqual(['unpaid', undefined]);
});
