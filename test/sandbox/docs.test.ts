import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { faultRule, NAMED_FAULTS } from '../../packages/sandbox/src/faults.ts';
import { defaultChoices } from '../../packages/sandbox/src/index.ts';
import { at, openSandbox } from './harness.ts';

const page = await readFile(new URL('../../docs/sandbox.md', import.meta.url), 'utf8');
const run = promisify(execFile);

test('every choice has its row in docs/sandbox.md, and every row is a choice', () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \|.*\|.*\|.*\|$/gm)].map((match) => match[1]);
  expect(rows).toEqual(Object.keys(defaultChoices));
});

test('every fault has its row in docs/sandbox.md and its place on the console, and every row is a fault', async () => {
  const rows = [...page.matchAll(/^\| `("[a-z-]+"|\{ "(?:delayMs|status)".*\})` \|/gm)].map((match) =>
    faultRule.parse({ fault: JSON.parse((match[1] ?? '').replace('…', '""')) }),
  );
  const faults = rows.map(({ fault }) => fault);
  expect(faults.filter((fault) => typeof fault === 'string').sort()).toEqual([...NAMED_FAULTS].sort());
  const fields = faults.flatMap((fault) => (typeof fault === 'string' ? [] : Object.keys(fault)));
  expect(new Set(fields)).toEqual(new Set(['delayMs', 'status', 'body', 'commit']));
  const console = await readFile(new URL('../../packages/sandbox/page/faults.js', import.meta.url), 'utf8');
  const offered = [...console.matchAll(/fault: '([a-z-]+)'/g)].map((match) => match[1]);
  expect(offered.sort()).toEqual([...NAMED_FAULTS].sort());
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
