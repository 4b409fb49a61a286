import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkSync } from 'recheck';
import { expect, it } from 'vitest';
import { withoutValues } from '../../../src/observability/redact.ts';
import { HOSTILE_TEXTS } from '../../helpers/hostile.ts';

const SRC = fileURLToPath(new URL('../../../src', import.meta.url));
/** A regular expression in the source: behind what an expression may begin after, on one line. */
const LITERAL =
  /(?<=[=(,:[!&|?;] ?|return |=> )\/(?![/*])((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/g;

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

/**
 * Counts steps, by the pattern's automaton or by trying texts, and takes no time for many steps, as it does by itself: a busy machine is slow too.
 * The largest expression takes it ten seconds.
 */
const BY_STEPS = { timeout: 240_000, seedingTimeout: null, incubationTimeout: null, attackTimeout: null };

const all = await expressions();

it('finds the expressions of the project', () => {
  expect(all.length).toBeGreaterThan(60);
  expect(all.map(([name]) => name)).toContain('observability/redact.ts /:\\/\\/[^\\s/@"]*@/g');
});

it.each(all)(
  'takes steps in proportion to the text: %s',
  { timeout: 300_000 },
  (_name, { source, flags }) => {
    expect(checkSync(source, flags, BY_STEPS)).toMatchObject({ status: 'safe' });
  },
);

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
