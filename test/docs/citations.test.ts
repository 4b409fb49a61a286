import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { ROOT, readPage } from './pages.ts';

/** A page that a source names, perhaps with a quoted part of it, or with one of the REST service's endpoints. */
const CITATION =
  /(?<![\w/.-])((?:[\w-]+\/)*[\w-]+\.md)\b(?:,[\s*/]+(?:"([^"]+)"|endpoints? (\d+)(?:(?:,| and) (\d+))*))?/g;
const SOURCES = /\.(?:ts|tsx|js|mjs|lua|sh|ya?ml)$/;
const ROOMS = ['src', 'test', 'bench', 'scripts', 'deploy', 'examples', 'packages', 'workbench'];

interface Citation {
  readonly file: string;
  readonly page: string;
  readonly part: string | undefined;
  readonly endpoints: readonly string[];
}

let pages: ReadonlySet<string>;
let citations: readonly Citation[];

const within = async (folder: string): Promise<readonly string[]> => {
  const entries = await readdir(join(fileURLToPath(ROOT), folder), { recursive: true }).catch(() => []);
  return entries.map((entry) => join(folder, entry)).filter((file) => !file.includes('node_modules'));
};

beforeAll(async () => {
  const files = (await Promise.all(ROOMS.map(within))).flat();
  const top = (await readdir(ROOT)).filter((file) => file.endsWith('.md'));
  pages = new Set([...top, ...(await within('docs')), ...files].filter((file) => file.endsWith('.md')));
  const sources = files.filter((file) => SOURCES.test(file) && !file.startsWith('test/docs/'));
  citations = (
    await Promise.all(
      sources.map(async (file) => {
        const found = [...(await readPage(file)).matchAll(CITATION)];
        return found.map(([, page = '', part, ...endpoints]) => ({
          file,
          page,
          part: part?.replace(/\s+(?:\*\s+)?/g, ' '),
          endpoints: endpoints.filter((endpoint) => endpoint !== undefined),
        }));
      }),
    )
  ).flat();
});

it('sources cite pages that are in the repository', () => {
  expect(citations.length).toBeGreaterThan(80);
  const lost = citations.filter(
    ({ file, page }) =>
      ![page, join(dirname(file), page), `bench/results/${page}`].some((at) => pages.has(at)),
  );
  expect(lost).toEqual([]);
});

it('a part that a source quotes is on the page that it names', async () => {
  const quoted = citations.filter(({ part }) => part !== undefined);
  expect(quoted.length).toBeGreaterThan(20);
  const lost: Citation[] = [];
  for (const citation of quoted) {
    const { page, part = '' } = citation;
    const text = (await readPage(page)).replace(/\s+/g, ' ').toLowerCase();
    if (!text.includes(part.toLowerCase())) lost.push(citation);
  }
  expect(lost).toEqual([]);
});

it('an endpoint that a source names is in the table of docs/upstream-api.md', async () => {
  const table = await readPage('docs/upstream-api.md');
  const named = citations.flatMap(({ page, endpoints }) =>
    page === 'docs/upstream-api.md' ? endpoints : [],
  );
  expect(named.length).toBeGreaterThan(20);
  for (const endpoint of named) expect(table).toMatch(new RegExp(`^\\| ${endpoint} \\|`, 'm'));
});

it('no source cites a specification without saying where it can be read', async () => {
  const unread: string[] = [];
  for (const file of await within('src')) {
    if (SOURCES.test(file) && /\(spec\b/.test(await readPage(file))) unread.push(file);
  }
  expect(unread).toEqual([]);
});
