import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { disk, useDisk } from '../../src/common/disk.ts';
import { entropy, useEntropy } from '../../src/common/entropy.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-disk-'));
});
afterEach(() => rm(folder, { recursive: true }));

it('a file that is replaced has all of its new content, and nothing is left beside it', async () => {
  const path = join(folder, 'file');
  // More than is written at once.
  for (const text of ['first', 'second '.repeat(1_000_000), '']) {
    await disk.replace(path, text);
    expect((await readFile(path, 'utf8')) === text).toBe(true);
  }
  expect(await readdir(folder)).toEqual(['file']);
});

it('a file that several processes replace at one moment has the whole content of one of them, and each is told that it could', async () => {
  const path = join(folder, 'file');
  const texts = ['first ', 'second '].map((text) => text.repeat(1_000_000));
  await Promise.all(texts.map((text) => disk.replace(path, text)));
  expect(texts.includes(await readFile(path, 'utf8'))).toBe(true);
  expect(await readdir(folder)).toEqual(['file']);
});

it('nothing is left of a content that could not be put into its place', async () => {
  await mkdir(join(folder, 'file', 'full'), { recursive: true });
  await expect(disk.replace(join(folder, 'file'), 'text')).rejects.toThrow();
  expect(await readdir(folder)).toEqual(['file']);
});

it('a content takes its place only once it is on the disk', async () => {
  const path = join(folder, 'file');
  const restore = useEntropy({ ...entropy, uuid: () => 'own' });
  try {
    // A pipe takes the content, and cannot say that it is on a disk.
    execFileSync('mkfifo', [`${path}.own`]);
    const read = readFile(`${path}.own`, 'utf8');
    await expect(disk.replace(path, 'text')).rejects.toThrow('fsync');
    expect(await read).toBe('text');
  } finally {
    restore();
  }
  expect(await readdir(folder)).toEqual([]);
});

it('a file, and the folder that is made for it, are kept from other users', async () => {
  const own = join(folder, 'own');
  await disk.replace(join(own, 'file'), 'text');
  for (const path of [own, join(own, 'file')]) expect((await stat(path)).mode & 0o077).toBe(0);
});

it('a database needs no place for temporary files, which a container with a read-only root does not have', () => {
  using database = disk.open(join(folder, 'database.sqlite'));
  // SQLite: 2 is MEMORY.
  expect(database.prepare('PRAGMA temp_store').get()).toEqual({ temp_store: 2 });
});

it('another disk is used until it is given back', () => {
  const system = disk;
  const other = { ...system };
  const restore = useDisk(other);
  expect(disk).toBe(other);
  restore();
  expect(disk).toBe(system);
});
