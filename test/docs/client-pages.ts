import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { COMPILER, folder, run } from '../helpers/packages.ts';

const PAGES = ['clients.md', ...(await readdir(folder('docs/clients'))).map((name) => `clients/${name}`)];
/** What holds for all, and what each library needs besides. */
export const page = (await Promise.all(PAGES.map((name) => readFile(folder(`docs/${name}`), 'utf8')))).join(
  '\n',
);
/** Every JavaScript block by the file name in its first line. */
export const snippets = new Map(
  [...page.matchAll(/^```js\n\/\/ (\S+)\.js\n(.*?)^```$/gms)].map(([, name = '', code = '']) => [name, code]),
);
/** Every TypeScript block by the file name in its first line. */
export const typed = new Map(
  [...page.matchAll(/^```tsx?\n\/\/ (\S+\.tsx?)\n(.*?)^```$/gms)].map(([, name = '', code = '']) => [
    name,
    code,
  ]),
);
/** A phone's programs, which stand on packages of their own: `e2e/mobile.test.ts` compiles them. */
export const PHONE: readonly string[] = ['App.tsx', 'pay-on-a-phone.ts'];

/**
 * Compiles the TypeScript of the pages in a folder. What is run has form.js beside it, which opens the form of the first screen.
 *
 * @param more what differs from an app that only checks its types
 * @param change returns what is compiled in the place of a file
 */
export async function compile(
  work: string,
  resolution: string,
  more: { readonly outDir?: string; readonly [option: string]: unknown } = {},
  change: (code: string, name: string) => string = (code) => code,
): Promise<void> {
  const inside = await mkdtemp(join(work, 'typed-'));
  const module = resolution === 'bundler' ? 'preserve' : resolution;
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    module,
    moduleResolution: resolution,
    target: 'es2022',
    lib: ['es2022', 'dom'],
    jsx: 'react-jsx',
    // Apollo's own declarations do not hold under these options.
    skipLibCheck: true,
    types: [],
    ...more,
  };
  const config = { compilerOptions, include: ['*.ts', '*.tsx'], exclude: [] };
  await writeFile(join(inside, 'package.json'), '{ "type": "module" }');
  await writeFile(join(inside, 'tsconfig.json'), JSON.stringify(config));
  for (const [name, code] of typed)
    if (!PHONE.includes(name)) await writeFile(join(inside, name), change(code, name));
  await run(COMPILER, ['-p', join(inside, 'tsconfig.json')], folder('.'));
  if (more.outDir !== undefined) await writeFile(join(more.outDir, 'form.js'), snippets.get('form') ?? '');
}
