import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { defaultChoices } from '../../packages/sandbox/src/index.ts';
import { at, openSandbox } from './harness.ts';

const page = await readFile(new URL('../../docs/sandbox.md', import.meta.url), 'utf8');
const run = promisify(execFile);

test('every choice has its row in docs/sandbox.md, and every row is a choice', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \|.*\|.*\|.*\|$/gm)].map((match) => match[1]);
  expect(rows).toEqual(Object.keys(defaultChoices));
});

test('the shell examples of docs/sandbox.md do as they say', async () => {
  await using box = await openSandbox();
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '');
  const script = ['set -euo pipefail', ...blocks].join('\necho ----\n');
  const here = script.replace('http://127.0.0.1:4010', box.sandbox.url);
  expect(here).not.toBe(script);
  const { stdout } = await run('bash', ['-c', here], { timeout: 300_000 });
  const outputs = stdout.split('----\n').slice(1);
  expect(outputs).toHaveLength(blocks.length);
  expect(at(outputs, 1)).toMatch(/validationStatus: 'PENDING'/);
  expect(at(outputs, 2)).toMatch(/\[ '\d{18}', '\d+\.\d{2}' \]/);
  expect(at(outputs, 3)).toMatch(/^\d{4}-/);
  const [before, , after] = at(outputs, 4).split(/(\{.*\})/);
  expect([before?.trim(), after?.trim()]).toEqual(['INITIALIZED', 'LIQUIDATED']);
  expect(at(outputs, 5)).toContain("[ 'LIQUIDATED', 0 ]");
  expect(at(outputs, 6)).toMatch(/no answer\n\[ true, 'Lost' \]/);
});
