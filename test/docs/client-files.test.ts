import { readdir } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ROOT, readPage } from './pages.ts';

it('a page says of each file of the client what it holds', async () => {
  const page = await readPage('packages/client/src/README.md');
  const told = [...page.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, files = '']) =>
    [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
  );
  const files = await readdir(new URL('packages/client/src/', ROOT));
  expect(told.toSorted()).toEqual(files.filter((file) => file.endsWith('.ts')).toSorted());
});
