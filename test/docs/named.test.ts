import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { ROOT, readPage } from './pages.ts';

/** What holds the texts of the project. */
const FOLDERS = [
  '.ci',
  '.github',
  'bench',
  'charts',
  'conformance',
  'deploy',
  'docs',
  'examples',
  'packages',
  'scripts',
  'simulate',
  'src',
  'test',
  'workbench',
];
/** Where a page or a comment may begin a path. */
const BASES = ['', 'src', 'test', 'workbench/src', 'packages/client', 'packages/sandbox/src'];
const PATH = '(?:[\\w.-]+/)+[\\w.-]+\\.(?:ts|tsx|mjs|md|sql|lua|sh)';

let files: ReadonlySet<string>;
let names: ReadonlySet<string>;

const within = async (folder: string): Promise<readonly string[]> => {
  const entries = await readdir(join(fileURLToPath(ROOT), folder), { recursive: true }).catch(() => []);
  return entries
    .map((entry) => join(folder, entry))
    .filter((file) => !/(?:^|\/)(?:node_modules|dist)\//.test(file));
};

beforeAll(async () => {
  files = new Set([...(await readdir(ROOT)), ...(await Promise.all(FOLDERS.map(within))).flat()]);
  names = new Set([...files].map((file) => basename(file)));
});

const pagesOf = (): readonly string[] =>
  [...files].filter(
    (file) =>
      file.endsWith('.md') &&
      (!file.includes('/') || /^(?:docs|src)\//.test(file)) &&
      file !== 'CHANGELOG.md',
  );

const exists = (path: string, from: string): boolean =>
  [dirname(from), ...BASES].some((base) => files.has(join(base, path)));

it('every file that a page names is in the repository', async () => {
  const lost: string[] = [];
  let found = 0;
  for (const page of pagesOf()) {
    for (const [, path = ''] of (await readPage(page)).matchAll(new RegExp(`\`(${PATH})\``, 'g'))) {
      found += 1;
      if (!exists(path, page)) lost.push(`${page}: ${path}`);
    }
  }
  expect(found).toBeGreaterThan(100);
  expect(lost).toEqual([]);
});

it('what a page says that a file has stands in that file', async () => {
  const lost: string[] = [];
  let found = 0;
  const lookFor = async (page: string, path: string, name: string): Promise<void> => {
    found += 1;
    const meant = [...files].filter((file) => file === path || file.endsWith(`/${path}`));
    const texts = await Promise.all(meant.map(readPage));
    if (!texts.some((text) => new RegExp(`(?<!\\w)${name}\\b`).test(text)))
      lost.push(`${page}: ${path}, ${name}`);
  };
  for (const page of pagesOf()) {
    const text = (await readPage(page)).replace(/\s+/g, ' ');
    // As in `file.ts` (`one`, `other`), and in `one` of `file.ts`.
    for (const [, path = '', named = ''] of text.matchAll(/`([\w./-]+\.(?:ts|lua))` \(([^)]*)\)/g)) {
      for (const [, name = ''] of named.matchAll(/`(#?[A-Za-z_]\w*)`/g)) await lookFor(page, path, name);
    }
    for (const [, name = '', path = ''] of text.matchAll(/`(#?[A-Za-z_]\w*)` of `([\w./-]+\.(?:ts|lua))`/g))
      await lookFor(page, path, name);
  }
  expect(found).toBeGreaterThan(150);
  expect(lost).toEqual([]);
});

it('every file that a comment of src names is in the repository', async () => {
  const lost: string[] = [];
  let found = 0;
  for (const file of [...files].filter((path) => /^src\/.*\.ts$/.test(path))) {
    const comments = (await readPage(file)).match(/^\s*(?:\/\/|\/?\*).*$/gm) ?? [];
    for (const [name] of comments
      .join('\n')
      .matchAll(/(?<![\w/.{-])(?:[\w-]+\/)*[\w-]+\.(?:ts|tsx|mjs|lua)\b/g)) {
      found += 1;
      if (name.includes('/') ? !exists(name, file) : !names.has(name)) lost.push(`${file}: ${name}`);
    }
  }
  expect(found).toBeGreaterThan(20);
  expect(lost).toEqual([]);
});

it('every variable that a page names is read somewhere', async () => {
  const sources = [...files].filter(
    (file) => /\.(?:ts|tsx|mjs|js|ya?ml|sh|tpl|json)$/.test(file) || /^\.ci\//.test(file),
  );
  const words = new Set<string>();
  for (const file of sources) {
    for (const [word] of (await readPage(file)).matchAll(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g))
      words.add(word);
  }
  const lost: string[] = [];
  for (const page of pagesOf()) {
    for (const [, word = ''] of (await readPage(page)).matchAll(
      /`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g,
    )) {
      if (!words.has(word)) lost.push(`${page}: ${word}`);
    }
  }
  expect(lost).toEqual([]);
});
