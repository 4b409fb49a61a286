import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { blocks, ROOT, readPage } from './pages.ts';

const SRC = fileURLToPath(new URL('src', ROOT));
/** What every room may use. */
const COMMON = 'common';

/** `from --> to`, or `from -.-> to` where nothing but types is imported. */
type Arrow = string;

let page: string;
/** The room of each file at the top of `src`; a folder is a room by its own name. */
let rooms: ReadonlyMap<string, string>;
let folders: readonly string[];
let imports: readonly {
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
  readonly file: string;
}[];

beforeAll(async () => {
  page = await readPage('ARCHITECTURE.md');
  const rows = [...page.matchAll(/^\| `(\w+)` \|[^|]+\|([^|]*)\|$/gm)];
  folders = rows.map(([, room = '']) => room);
  rooms = new Map(
    rows.flatMap(([, room = '', files = '']) =>
      [...files.matchAll(/`([\w-]+\.[jt]s)`/g)].map(([, file = '']) => [file, room]),
    ),
  );
  const files = (await readdir(SRC, { recursive: true })).filter((file) => /\.[jt]s$/.test(file));
  imports = (await Promise.all(files.map(importsOf))).flat();
});

const roomOf = (file: string): string => {
  const [first = ''] = file.split('/');
  return first === file ? (rooms.get(file) ?? file) : first;
};

async function importsOf(file: string) {
  const text = await readFile(join(SRC, file), 'utf8');
  const statements = text.matchAll(
    /^(import type|export type|import|export)\b[^;']*?'(\.[^']+)';|import\('(\.[^']+)'\)/gm,
  );
  return [...statements].map(([, keyword = '', target, lazy = '']) => {
    const path = relative(SRC, normalize(join(SRC, dirname(file), target ?? lazy)));
    return { file, from: roomOf(file), to: roomOf(path), isType: keyword.endsWith('type') };
  });
}

function arrowsOfTheCode(): readonly Arrow[] {
  const between = imports.filter(({ from, to }) => from !== to && from !== COMMON && to !== COMMON);
  const pairs = new Map<string, boolean>();
  for (const { from, to, isType } of between) {
    const pair = `${from} ${to}`;
    pairs.set(pair, (pairs.get(pair) ?? true) && isType);
  }
  return [...pairs].map(([pair, typesAlone]) => pair.replace(' ', typesAlone ? ' -.-> ' : ' --> ')).sort();
}

it('every file at the top of src has its room in ARCHITECTURE.md, and every room exists', async () => {
  const entries = await readdir(SRC, { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  expect(files.sort()).toEqual([...rooms.keys()].sort());
  const inside = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const withoutFiles = folders.filter((room) => ![...rooms.values()].includes(room));
  expect(withoutFiles.sort()).toEqual(inside.sort());
});

it('the diagram of ARCHITECTURE.md shows the imports that there are, and no other', () => {
  const [diagram] = blocks(page, 'mermaid');
  const drawn = [...(diagram?.text ?? '').matchAll(/^ +(\w+) (-->|-\.->) (\w+)$/gm)].map(([line]) =>
    line.trim(),
  );
  expect(drawn.length).toBeGreaterThan(10);
  expect([...drawn].sort()).toEqual(arrowsOfTheCode());
});

it('the arrows lead in no circle, but for the context, whose types the rooms below it name', () => {
  const arrows = arrowsOfTheCode()
    .filter((arrow) => !arrow.endsWith('-.-> context'))
    .map((arrow) => arrow.split(/ -.*> /));
  const reaches = (from: string, seen: readonly string[]): void => {
    expect(seen, [...seen, from].join(' → ')).not.toContain(from);
    for (const [source, to = ''] of arrows) if (source === from) reaches(to, [...seen, from]);
  };
  for (const [from = ''] of arrows) reaches(from, []);
});

it('the rooms that know no other import none, and what is common imports nothing but that', () => {
  const [, named = ''] = /^(`upstream`.*) know no other room\./m.exec(page) ?? [];
  const alone = [...named.matchAll(/`(\w+)`/g)].map(([, room]) => room);
  expect(alone).toHaveLength(6);
  for (const { from, to, file } of imports) {
    if (alone.includes(from) || from === COMMON) expect([from, COMMON], file).toContain(to);
  }
});

it('the files that ARCHITECTURE.md follows work through are there', async () => {
  const { text } = { text: page.replace(/^\|.*$/gm, '') };
  const named = [...text.matchAll(/`((?:\w+\/)?[\w-]+\.ts)`/g)].map(([, file = '']) => file);
  const files = await readdir(SRC, { recursive: true });
  for (const file of named) expect(files).toContain(file);
});
