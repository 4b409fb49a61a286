import { readdir } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ROOT, readPage } from './pages.ts';

it('the page of the client’s package says of each of its files what it holds', async () => {
  const page = await readPage('packages/client/README.md');
  const [, map = ''] = /^## The files\n(.*?)\n\n\[/ms.exec(page) ?? [];
  const told = [...map.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, files = '']) =>
    [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
  );
  expect(told.toSorted()).toEqual((await readdir(new URL('packages/client/src/', ROOT))).toSorted());
});
