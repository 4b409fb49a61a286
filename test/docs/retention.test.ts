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

/** Days that have nothing to do with a record of a payment. */
const OTHERS =
  /\b7 days|who meant it 20 days ago|timer takes 24 days|ring after 25 days|JOURNAL_RETENTION, 400 days|^\| `pasarela:money:\{C\}:readings`.*/g;

/** Each "n days" of the texts, also as it is written in code, with the line that has it. */
async function daysOfTexts() {
  const found: { readonly days: number; readonly at: string }[] = [];
  for await (const file of glob(TEXTS, { cwd: fileURLToPath(ROOT) })) {
    if (isOfBefore(file)) continue;
    for (const [index, line] of (await readPage(file)).split('\n').entries()) {
      for (const [text, days] of line.replace(OTHERS, '').matchAll(/\b(\d+) (?:days?\b|\* 86_400_000)/g))
        found.push({ days: Number(days), at: `${file}:${index + 1}: ${text}` });
    }
  }
  return found;
}

it('the texts say as many days as a record of a payment is kept, and what is kept beside it', async () => {
  // For an app; in Redis for the index of transactions; for what both the sending and the answer prolong, and for its lines.
  const [app, record, index, twice, lines] = [-1, 0, 2, RETENTION_DAYS, RETENTION_DAYS + 1].map(
    (more) => RETENTION_DAYS + more,
  );
  const found = await daysOfTexts();
  expect(found.length).toBeGreaterThan(50);
  expect(found.filter(({ days }) => ![app, record, index, twice, lines].includes(days))).toEqual([]);
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

it('the client sends nothing of an intent from a day before the gateway forgets its key', () => {
  const standing = (ageMs: number) =>
    standingOf({
      ...{ idempotencyKey: 'a key of a test', mutation: 'createMoneyOut', input: {}, unanswered: 0 },
      createdAt: new Date(Date.now() - ageMs).toISOString(),
    });
  const known = (RETENTION_DAYS - 1) * DAY_MS;
  expect([standing(known - 60_000), standing(known + 60_000)]).toEqual(['unpaid', undefined]);
});
