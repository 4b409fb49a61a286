import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';
import { ROOT, readPage } from './pages.ts';

/** Root fields that no endpoint has to itself: they lead to others, or are the gateway's own. */
const OF_NONE = ['client', 'eventCursor', 'node', 'nodes'];

/** What stands beneath a heading. */
const part = (page: string, heading: string): string =>
  page.split(`\n${heading}\n`)[1]?.split('\n## ')[0] ?? '';

/** Routes of a cell such as "`GET`, `PATCH`, `DELETE /v1/…`", each with its method. */
function routesOf(cell: string): readonly string[] {
  const path = /\/v1\/[^`]*/.exec(cell)?.[0];
  return [...cell.matchAll(/\b[A-Z]{3,}\b/g)].map(([method]) => `${method} ${path}`);
}

/** Endpoints by their numbers, of lines in which a pattern finds the number and the cell. */
const numbered = (text: string, line: RegExp) =>
  Object.fromEntries([...text.matchAll(line)].map(([, number = '', cell = '']) => [number, routesOf(cell)]));

let table: string;
let endpoints: Record<string, readonly string[]>;
beforeAll(async () => {
  table = part(await readPage('README.md'), '## From REST to graph');
  endpoints = numbered(table, /^\| (\d+)\. (.+?) \|/gm);
});

it('the README has a row for each endpoint that is documented, and the sandbox answers it', async () => {
  const documented = part(await readPage('docs/upstream-api.md'), '## Endpoints');
  expect(endpoints).toEqual(numbered(documented, /^\| (\d+) \| (.+?) \|/gm));
  const code = await readPage('packages/sandbox/src/endpoints.ts');
  const answers = code.split('interface RestAnswers {')[1]?.split('\n}')[0] ?? '';
  const served = [...answers.matchAll(/^ {2}'(.+?)'/gm)].map(([, route]) => route);
  expect(Object.values(endpoints).flat().toSorted()).toEqual(served.toSorted());
});

it.each(['README.md', 'docs/sandbox.md', 'docs/comparison.md'])(
  '%s says how many there are',
  async (page) => {
    const told = /\b(\d+) endpoints\b/.exec(await readPage(page))?.[1];
    expect(Number(told)).toBe(Object.keys(endpoints).length);
  },
);

it('a page that says that the service lists no transactions links to what it lacks, where a new endpoint finds the page', async () => {
  const says =
    /transactions\b[^.|]{0,40}\bno list\b|\bno list of\b[^.|]{0,40}transactions|\blists no transactions/i;
  const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: fileURLToPath(ROOT) });
  const lines: string[] = [];
  for (const page of pages.filter((one) => one !== 'CHANGELOG.md')) {
    const text = await readPage(page);
    lines.push(...text.split('\n').filter((line) => says.test(line.replaceAll('[', ''))));
  }
  expect(lines.length).toBeGreaterThan(8);
  expect(lines.filter((line) => !line.includes('#what-it-lacks'))).toEqual([]);
});

it('each root field of the graph stands beside what it is made of', () => {
  const schema = buildSchema();
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const names = roots.flatMap((root) => Object.keys(root?.getFields() ?? {}));
  // The first cell of a row is the path, which may hold the same word.
  const made = table.replaceAll(/^\| .+? \|/gm, '');
  const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(made));
  expect(missing.toSorted()).toEqual(OF_NONE);
});
