import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  isArrowFunction,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isMethodDeclaration,
  isSetAccessorDeclaration,
  isVariableDeclaration,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';
import { expect, it } from 'vitest';

// Unused exports are not looked for here: knip finds them (`npm run check`). The rooms and their arrows are held by
// test/docs/architecture.test.ts.

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAX_FILE_LINES = 300;
const MAX_FUNCTION_LINES = 70;

const files = globSync(
  ['src', 'packages/*/src', 'workbench/src'].map((folder) => `${folder}/**/*.{ts,tsx,js}`),
  {
    cwd: ROOT,
  },
).sort();

const linesOf = (text: string): number => text.trimEnd().split('\n').length;

it('no file is longer than 300 lines: past that, look for its second reason to change, and give it a file of its own', () => {
  expect(files.length).toBeGreaterThan(300);
  const long = files
    .map((file) => [file, linesOf(readFileSync(join(ROOT, file), 'utf8'))] as const)
    .filter(([, lines]) => lines > MAX_FILE_LINES);
  expect(long).toEqual([]);
});

const isFunction = (node: Node): boolean =>
  isFunctionDeclaration(node) ||
  isFunctionExpression(node) ||
  isArrowFunction(node) ||
  isMethodDeclaration(node) ||
  isConstructorDeclaration(node) ||
  isGetAccessorDeclaration(node) ||
  isSetAccessorDeclaration(node);

/** The functions of a file that are too long, as `file name`, with how many lines each has. */
function longFunctions(file: string, source: SourceFile): [string, number][] {
  const found: [string, number][] = [];
  const visit = (node: Node, name: string): void => {
    const { name: own } = node as { readonly name?: { readonly text?: string } };
    const called = own?.text ?? (isFunction(node) || isVariableDeclaration(node) ? name : '');
    if (isFunction(node)) {
      const lines = linesOf(source.text.slice(node.getStart(source), node.end));
      if (lines > MAX_FUNCTION_LINES) found.push([`${file} ${called}`, lines]);
    }
    node.forEachChild((child) => visit(child, called));
  };
  visit(source, '');
  return found;
}

it('no function is longer than 70 lines: give a step of it a function with a name', () => {
  const api = new API({ cwd: ROOT });
  try {
    const projects = ['tsconfig.json', 'packages/client/tsconfig.json', 'workbench/tsconfig.json'];
    const snapshot = api.updateSnapshot({ openProjects: projects.map((project) => join(ROOT, project)) });
    const read = new Map<string, SourceFile>();
    for (const { program, rootFiles } of snapshot.getProjects()) {
      for (const path of rootFiles) {
        const file = relative(ROOT, path);
        if (!files.includes(file) || read.has(file)) continue;
        const source = program.getSourceFile(path);
        if (source !== undefined) read.set(file, source);
      }
    }
    const missing = files.filter((file) => /\.tsx?$/.test(file) && !read.has(file));
    expect(missing).toEqual([]);
    const long = [...read].flatMap(([file, source]) => longFunctions(file, source));
    expect(long).toEqual([]);
  } finally {
    api.close();
  }
});

it('no files import each other in a circle: what both need goes into a third', () => {
  const imports = new Map(
    files.map((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8');
      const found = [...text.matchAll(/^(?:import|export)\b[^;']*?'(\.[^']+)'/gm)];
      return [file, found.map(([, path = '']) => join(dirname(file), path))] as const;
    }),
  );
  const done = new Set<string>();
  const circles: string[][] = [];
  const follow = (file: string, trail: readonly string[]): void => {
    const at = trail.indexOf(file);
    if (at >= 0) circles.push([...trail.slice(at), file]);
    if (at >= 0 || done.has(file)) return;
    for (const next of imports.get(file) ?? []) follow(next, [...trail, file]);
    done.add(file);
  };
  for (const file of files) follow(file, []);
  expect(circles).toEqual([]);
});
