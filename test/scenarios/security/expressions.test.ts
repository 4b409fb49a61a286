import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { publicMessage, redact, withoutValues } from '../../../src/observability/redact.ts';
import { HOSTILE_TEXTS } from '../../helpers/hostile.ts';

const SRC = fileURLToPath(new URL('../../../src', import.meta.url));
/** A regular expression in the source: behind what an expression may begin after, on one line. */
const LITERAL =
  /(?<=[=(,:[!&|?;] ?|return |=> )\/(?![/*])((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/g;

/** Linear in 32,000 characters is about a millisecond; quadratic is a second. CPU, not time, as others run beside it. */
const CPU_MS = 200;

/** Every expression of the project, by the place where it stands. */
async function expressions(): Promise<readonly (readonly [string, RegExp])[]> {
  const files = (await readdir(SRC, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const found = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(SRC, file), 'utf8');
      const code = text.replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, '');
      return [...code.matchAll(LITERAL)].map(
        ([whole, pattern = '', flags]) => [`${file} ${whole}`, new RegExp(pattern, flags)] as const,
      );
    }),
  );
  return found.flat();
}

/** Words that stand in a pattern, and runs of one character: what it gets furthest with before it fails. */
function textsAgainst({ source }: RegExp): string[] {
  const words = source.match(/[\w:/ -]{3,}/g) ?? [];
  const parts = [
    ...words,
    'a',
    'A',
    '0',
    ' ',
    '.',
    '/',
    '-',
    '"',
    ':',
    '*',
    'a.',
    'a/',
    '0:',
    'a@',
    'a-',
    ' ,',
    '@/',
  ];
  const repeated = parts.map((part) => part.repeat(Math.ceil(32_000 / part.length)));
  return repeated.flatMap((text) => [text, `${text}\u0000`, `${text}/`, `${words.join('')}${text}\u0000`]);
}

function cpuOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const all = await expressions();

it('finds the expressions of the project', () => {
  expect(all.length).toBeGreaterThan(60);
  expect(all.map(([name]) => name)).toContain('observability/redact.ts /:\\/\\/[^\\s/@"]*@/g');
});

describe('takes time in proportion to the text:', () => {
  it.each(all)('%s', (_name, expression) => {
    for (const text of [...HOSTILE_TEXTS, ...textsAgainst(expression)]) {
      expect(
        cpuOf(() => text.replace(expression, '')),
        `${text.slice(0, 30)}…`,
      ).toBeLessThan(CPU_MS);
    }
  });

  it.each([
    ['redact', redact],
    ['publicMessage', publicMessage],
    ['withoutValues', withoutValues],
  ])('%s', (_name, clean) => {
    for (const text of HOSTILE_TEXTS) {
      for (const message of [
        text,
        `Variable "$a" has invalid value: ${text}`,
        `Value "${text}" does not exist in "E" enum.`,
      ]) {
        expect(cpuOf(() => clean(message))).toBeLessThan(CPU_MS);
      }
    }
  });
});

it('what a caller is told is short, and well-formed', () => {
  for (const text of [...HOSTILE_TEXTS, '😀'.repeat(1_000), `x${'😀'.repeat(1_000)}`]) {
    expect(withoutValues(text).length).toBeLessThan(400);
    expect(withoutValues(text).isWellFormed()).toBe(true);
  }
  expect(
    withoutValues(
      `Value "${'x'.repeat(9_000)}" does not exist in "E" enum. Did you mean the enum value "A"?`,
    ),
  ).toBe('The value does not exist in "E" enum. Did you mean the enum value "A"?');
});
