import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { blocks, ROOT, readPage } from './pages.ts';

const SRC = fileURLToPath(new URL('src', ROOT));
/** What every room may use; the picture does not show it. */
const COMMON = 'common';
/** The only file at the top of `src`. */
const START = 'start.js';

interface Import {
  /** Paths below `src`. */
  readonly from: string;
  readonly to: string;
  /** Whether the module is loaded when the code gets there, and not with the file. */
  readonly isLazy: boolean;
}

let page: string;
let files: readonly string[];
let imports: readonly Import[];

beforeAll(async () => {
  page = await readPage('ARCHITECTURE.md');
  files = (await readdir(SRC, { recursive: true })).filter((file) => /\.[jt]s$/.test(file));
  imports = (await Promise.all(files.map(importsOf))).flat();
});

const roomOf = (file: string): string => file.split('/')[0] ?? file;

async function importsOf(from: string): Promise<readonly Import[]> {
  const text = await readFile(join(SRC, from), 'utf8');
  const statements = text.matchAll(/^(?:import|export)\b[^;']*?'(\.[^']+)';|import\('(\.[^']+)'\)/gm);
  return [...statements].map(([, eager, lazy = '']) => ({
    from,
    to: relative(SRC, normalize(join(SRC, dirname(from), eager ?? lazy))),
    isLazy: eager === undefined,
  }));
}

/** From each name to the names that it leads to. */
type Arrows = ReadonlyMap<string, ReadonlySet<string>>;

function arrowsBetween(pairs: readonly (readonly [string, string])[]): Arrows {
  const arrows = new Map<string, Set<string>>();
  for (const [from, to] of pairs) {
    if (from !== to) arrows.set(from, (arrows.get(from) ?? new Set()).add(to));
  }
  return arrows;
}

const roomArrows = (): Arrows =>
  arrowsBetween(
    imports
      .map(({ from, to }) => [roomOf(from), roomOf(to)] as const)
      .filter(([from, to]) => from !== START && from !== COMMON && to !== COMMON),
  );

/** The first circle that arrows lead in; undefined for none. */
function circleOf(arrows: Arrows): readonly string[] | undefined {
  const done = new Set<string>();
  const search = (name: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
    if (done.has(name)) return undefined;
    for (const next of arrows.get(name) ?? []) {
      const circle = search(next, [...path, name]);
      if (circle !== undefined) return circle;
    }
    done.add(name);
    return undefined;
  };
  return [...arrows.keys()].map((name) => search(name, [])).find((circle) => circle !== undefined);
}

it('every folder of sources in src is a room of ARCHITECTURE.md, and nothing but start.js lies beside them', async () => {
  const rooms = [...page.matchAll(/^\| `(\w+)` \|[^|]+\|$/gm)].map(([, room]) => room);
  const entries = await readdir(SRC, { withFileTypes: true });
  expect(entries.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([START]);
  const folders = new Set(files.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));
  expect(rooms.sort()).toEqual([...folders].sort());
});

it('the diagram of ARCHITECTURE.md shows the imports that there are, and no other', () => {
  const [diagram] = blocks(page, 'mermaid');
  const drawn = [...(diagram?.text ?? '').matchAll(/^ +(\w+) --> (\w+)$/gm)].map(([line]) => line.trim());
  const made = [...roomArrows()].flatMap(([from, tos]) => [...tos].map((to) => `${from} --> ${to}`));
  expect(drawn.length).toBeGreaterThan(10);
  expect([...drawn].sort()).toEqual(made.sort());
});

it('the diagram of the rooms of upstream shows the imports that there are, and no other', () => {
  const [, diagram] = blocks(page, 'mermaid');
  const drawn = [...(diagram?.text ?? '').matchAll(/^ +(\w+) --> (\w+)$/gm)].map(([line]) => line.trim());
  const innerRoomOf = (file: string): string => /^upstream\/(\w+)\//.exec(file)?.[1] ?? 'nouns';
  const within = imports.filter(({ from, to }) => roomOf(from) === 'upstream' && roomOf(to) === 'upstream');
  const arrows = arrowsBetween(within.map(({ from, to }) => [innerRoomOf(from), innerRoomOf(to)] as const));
  const made = [...arrows].flatMap(([from, tos]) => [...tos].map((to) => `${from} --> ${to}`));
  expect([...drawn].sort()).toEqual(made.sort());
  expect(circleOf(arrows)).toBeUndefined();
});

it('the arrows between rooms lead in no circle, those of types included', () => {
  expect(circleOf(roomArrows())).toBeUndefined();
});

it('the imports between files lead in no circle, those of types included', () => {
  const eager = imports.filter(({ isLazy }) => !isLazy).map(({ from, to }) => [from, to] as const);
  expect(circleOf(arrowsBetween(eager))).toBeUndefined();
});

it('the rooms that ARCHITECTURE.md calls independent are', () => {
  const [, free = ''] = /^(`upstream`.*) import no other room\./m.exec(page) ?? [];
  const names = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, room = '']) => room);
  expect(names(free)).toHaveLength(2);
  const arrows = roomArrows();
  for (const room of names(free)) expect([...(arrows.get(room) ?? [])], room).toEqual([]);
  const [, stores = ''] = /(`events`[^.]*) import `redis` alone\./.exec(page) ?? [];
  expect(names(stores)).toHaveLength(2);
  for (const room of names(stores)) expect([...(arrows.get(room) ?? [])], room).toEqual(['redis']);
  const common = imports.filter(({ from }) => roomOf(from) === COMMON);
  for (const { from, to } of common) expect(roomOf(to), from).toBe(COMMON);
});

it('the sandbox imports nothing of the gateway, and the gateway nothing but its door', async () => {
  const PACKAGE = fileURLToPath(new URL('packages/sandbox/src', ROOT));
  const parts = (await readdir(PACKAGE, { recursive: true })).filter((file) => file.endsWith('.ts'));
  expect(parts.length).toBeGreaterThan(40);
  for (const part of parts) {
    const text = await readFile(join(PACKAGE, part), 'utf8');
    for (const [, to = ''] of text.matchAll(/(?:from |import\()'([.#][^']+)'/g)) {
      expect(relative(PACKAGE, normalize(join(PACKAGE, dirname(part), to))), part).not.toMatch(/^\.\./);
    }
  }
  const doors = await Promise.all(files.map(async (file) => [file, await readFile(join(SRC, file), 'utf8')]));
  const users = doors.filter(([, text]) => text?.includes("'#sandbox'")).map(([file]) => file);
  expect(users.sort()).toEqual(['app/demo.ts', 'cli/sandbox.ts']);
  for (const [file, text] of doors) expect(text, file).not.toMatch(/packages\/sandbox/);
});

it('the files that ARCHITECTURE.md follows work through are there', () => {
  const prose = page.replace(/^\|.*$/gm, '');
  const named = [...prose.matchAll(/`((?:[\w-]+\/)+[\w-]+\.ts)`/g)].map(([, file = '']) => file);
  expect(named.length).toBeGreaterThan(15);
  for (const file of named) expect(files).toContain(file);
});
