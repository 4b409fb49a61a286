import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { VARIABLE_NAMES } from '../../src/app/variables.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { recordingLogger } from '../helpers/events.ts';
import { ROOT, readPage } from './pages.ts';

/** A row of the tables of docs/layers.md, "Every wait of an operation". */
interface Wait {
  readonly name: string;
  readonly file: string;
  readonly inFile: string;
  readonly text: string;
}

const ROW = /^\| `([\w ]+)` \| `(src\/[\w./-]+\.ts)` \(`(\w+)`\) \|(.*)\|$/gm;

let section: string;
let waits: readonly Wait[];
beforeAll(async () => {
  const page = await readPage('docs/layers.md');
  section = page.split('\n## ').find((part) => part.startsWith('Every wait of an operation')) ?? '';
  waits = [...section.matchAll(ROW)].map(([, name = '', file = '', inFile = '', text = '']) => ({
    name,
    file,
    inFile,
    text,
  }));
});

it('each wait has a name of its own, and its code is where the page says', async () => {
  expect(waits.length).toBeGreaterThan(20);
  expect(new Set(waits.map(({ name }) => name)).size).toBe(waits.length);
  for (const { file, inFile, name } of waits) {
    expect(await readPage(file), name).toMatch(new RegExp(`\\b${inFile}\\b`));
  }
});

it('each constant of a wait has the value that the page says, in the file that the page says', async () => {
  let found = 0;
  for (const { file, text, name } of waits) {
    for (const [, constant, value = ''] of text.matchAll(/`([A-Z_]+)` = ([\d,]+)/g)) {
      found += 1;
      const [, written = ''] = new RegExp(`const ${constant} = ([\\d_]+);`).exec(await readPage(file)) ?? [];
      expect(written.replaceAll('_', ''), `${name}: ${constant}`).toBe(value.replaceAll(',', ''));
    }
  }
  expect(found).toBeGreaterThan(10);
});

it('each variable and each metric of a wait is one of the gateway', async () => {
  const metrics = await createMetrics(() => new Map(), recordingLogger()).registry.getMetricsAsJSON();
  const names = new Set(metrics.map(({ name }) => name));
  for (const { text, name } of waits) {
    for (const [, metric] of text.matchAll(/`((?:pasarela|nodejs)_[a-z_]+)`/g))
      expect(names, name).toContain(metric);
    const [, places = '', atMost = ''] = text.split(' | ');
    for (const [, variable] of `${places} ${atMost}`.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`(?! = )/g))
      expect(VARIABLE_NAMES, name).toContain(variable);
  }
});

it('whatever waits in a queue or for a turn is on the page', async () => {
  /** These wait as well, and no operation waits for them: a comparison of balances. The context hands on the turn of `batch`. */
  const others = ['src/app/balance-comparisons.ts', 'src/operation/context.ts'];
  const waiting: string[] = [];
  for await (const file of glob('src/**/*.ts', { cwd: fileURLToPath(ROOT) })) {
    if (/new FairQueue\(|new SharedWork<|turns\??\.turn\(/.test(await readPage(file))) waiting.push(file);
  }
  expect(waiting.length).toBeGreaterThan(5);
  const named = new Set([...waits.map(({ file }) => file), ...others]);
  expect(waiting.filter((file) => !named.has(file))).toEqual([]);
});
