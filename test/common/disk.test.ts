import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { disk, useDisk } from '../../src/common/disk.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-disk-'));
});
afterEach(() => rm(folder, { recursive: true }));

it('a file that is replaced has all of its new content, and nothing is left beside it', async () => {
  const path = join(folder, 'file');
  // More than is written at once.
  for (const text of ['first', 'second '.repeat(1_000_000), '']) {
    await disk.replace(path, text, 1);
    expect((await readFile(path, 'utf8')) === text).toBe(true);
  }
  expect(await readdir(folder)).toEqual(['file']);
});

it('a file, and the folder that is made for it, are kept from other users', async () => {
  const own = join(folder, 'own');
  await disk.replace(join(own, 'file'), 'text', 1);
  for (const path of [own, join(own, 'file')]) expect((await stat(path)).mode & 0o077).toBe(0);
});

it('another disk is used until it is given back', () => {
  const system = disk;
  const other = { ...system };
  const restore = useDisk(other);
  expect(disk).toBe(other);
  restore();
  expect(disk).toBe(system);
});
