import { beforeAll, expect, it } from 'vitest';
import { readPage } from './pages.ts';

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
