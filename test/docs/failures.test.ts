import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { createMetrics } from '../../src/observability/metrics.ts';
import { recordingLogger } from '../helpers/events.ts';
import { ROOT, readPage } from './pages.ts';

/** A row of docs/layers.md, "A query failed, or one field of it". */
interface Failure {
  readonly messages: readonly string[];
  readonly lines: readonly string[];
  readonly files: readonly string[];
}

const escaped = (text: string): string => text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');

const all = (text: string, each: RegExp): readonly string[] =>
  [...text.matchAll(each)].map(([, found = '']) => found);

let failures: readonly Failure[];
beforeAll(async () => {
  const page = await readPage('docs/layers.md');
  const section = page.split('\n## ').find((part) => part.startsWith('A query failed')) ?? '';
  const rows = [...section.matchAll(/^\| (.+) \|$/gm)].map(([, row = '']) => row.split(' | ')).slice(2);
  failures = rows.map((cells) => ({
    messages: all(cells[0] ?? '', /"(.+?)"/g),
    lines: all(cells[3] ?? '', /the line `(.+?)`/g),
    files: all(cells[5] ?? '', /`(src\/[\w./-]+\.ts)`/g),
  }));
});

/** The texts in quotation marks of any kind in the files, with `…` for what is filled in. */
async function textsOf(files: readonly string[]): Promise<readonly string[]> {
  const code = (await Promise.all(files.map((file) => readPage(file)))).join('\n');
  const found = [...code.matchAll(/(['"`])((?:(?!\1)[^\n])+)\1/g)];
  const texts = found.map(([, , text = '']) => text.replace(/\$\{[^}]*\}/g, '…'));
  // What is filled in alone would be any message.
  return texts.filter((text) => text.replaceAll('…', '').length > 12);
}

const says = (text: string, message: string): boolean =>
  new RegExp(`^${escaped(text).replaceAll('…', '.+')}$`).test(message) ||
  (message.startsWith('… ') && text.endsWith(message.slice(1))) ||
  (message.endsWith('…') && text.startsWith(message.slice(0, -1)));

it('each message and each line of a query that fails stands in a file of its row', async () => {
  expect(failures.flatMap(({ messages }) => messages).length).toBeGreaterThan(15);
  expect(failures.flatMap(({ lines }) => lines).length).toBeGreaterThan(3);
  for (const { messages, lines, files } of failures) {
    const texts = await textsOf(files);
    for (const message of [...messages, ...lines])
      expect(
        texts.some((text) => says(text, message)),
        message,
      ).toBe(true);
  }
});

it('each file of a row has a message or a line of that row', async () => {
  for (const { messages, lines, files } of failures.filter((row) => row.messages.length > 0)) {
    for (const file of files) {
      const texts = await textsOf([file]);
      expect(
        [...messages, ...lines].some((told) => texts.some((text) => says(text, told))),
        file,
      ).toBe(true);
    }
  }
});

it('each metric and each line of "The service answers 429" is one of the gateway', async () => {
  const page = await readPage('docs/layers.md');
  const section = page.split('\n## ').find((part) => part.startsWith('The service answers 429')) ?? '';
  const metrics = await createMetrics(() => new Map(), recordingLogger()).registry.getMetricsAsJSON();
  const names = new Set(metrics.map(({ name }) => name));
  const counted = all(section, /`(pasarela_[a-z_]+)`/g);
  expect(counted.length).toBeGreaterThan(5);
  for (const metric of counted) expect(names).toContain(metric);

  const files: string[] = [];
  for await (const file of glob('src/**/*.ts', { cwd: fileURLToPath(ROOT) })) files.push(file);
  const texts = await textsOf(files);
  const lines = all(section, /`(\w+(?: [\w;…]+(?:'\w+)?){3,}\.?)`/g);
  expect(lines.length).toBeGreaterThan(5);
  for (const line of lines)
    expect(
      texts.some((text) => says(text, line)),
      line,
    ).toBe(true);
});
