import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CursorFile } from '../../src/cli/cursor-file.ts';
import { until } from '../helpers/until.ts';

let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-cursor-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const newPath = (): string => {
  files += 1;
  return join(folder, `${files}.cursor`);
};
const read = (path: string): string | undefined => new CursorFile(path).cursor;

describe('a file that holds a cursor', () => {
  it('is made with the first cursor, and gives back the last at every moment', async () => {
    const path = newPath();
    const file = new CursorFile(path);
    expect(file.cursor).toBeUndefined();
    for (let saved = 0; saved < 30; saved += 1) {
      const cursor = `${saved}-`.repeat(saved + 1);
      file.save(cursor);
      expect([file.cursor, read(path)]).toEqual([cursor, cursor]);
    }
    await file.close();
    expect((await stat(path)).mode & 0o077).toBe(0);
    const again = new CursorFile(path);
    again.save('again');
    await again.close();
    expect(read(path)).toBe('again');
  });

  it('gives the cursor before where the last one was not written whole', async () => {
    const path = newPath();
    const file = new CursorFile(path);
    for (const cursor of ['first', 'second', 'third']) file.save(cursor);
    await file.close();
    const whole = await readFile(path, 'latin1');
    const start = whole.indexOf('third');
    for (const torn of [
      `${whole.slice(0, start)}thix${whole.slice(start + 4)}`,
      whole.slice(0, start + 2),
      whole.replace('third', '     '),
    ]) {
      await writeFile(path, torn);
      expect(read(path)).toBe('second');
    }
    await appendFile(path, 'and more');
    expect(read(path)).toBe('second');
  });

  it('is not written any more where another process has put its own in its place, or it was deleted', async () => {
    const path = newPath();
    const [one, other] = [new CursorFile(path), new CursorFile(path)];
    one.save('first');
    other.save('second');
    expect(() => one.save('third')).toThrow(
      `cannot be saved in ${path}: another process saves its place there`,
    );
    expect(read(path)).toBe('second');
    await rm(path);
    expect(() => other.save('fourth')).toThrow('or the file was deleted');
    for (const file of [one, other]) await file.close();
  });

  it('may be saved in again after it was closed, and closed again', async () => {
    const path = newPath();
    const file = new CursorFile(path);
    for (const cursor of ['first', 'second']) {
      file.save(cursor);
      await file.close();
      expect(read(path)).toBe(cursor);
    }
    await file.close();
  });

  it('may be one that an operator has written', async () => {
    const path = newPath();
    await writeFile(path, 'by-hand_1\n');
    const file = new CursorFile(path);
    expect(file.cursor).toBe('by-hand_1');
    file.save('later');
    await file.close();
    expect(read(path)).toBe('later');
  });

  it.each(['', ' \n', 'two words', 'x'.repeat(10) + '\u0000'.repeat(5_000)])(
    'is refused without one: %j',
    async (text) => {
      const path = newPath();
      await writeFile(path, text);
      expect(() => new CursorFile(path)).toThrow(/holds no cursor/);
    },
  );

  it('is refused where it cannot be read, and named where it cannot be written', async () => {
    expect(() => new CursorFile(folder)).toThrow(/cannot be read/);
    const file = new CursorFile(join(folder, 'missing', 'a.cursor'));
    expect(() => file.save('x')).toThrow(/cannot be saved in/);
  });

  it('takes the place of the one before only once it is on the disk', async () => {
    const path = newPath();
    await writeFile(path, 'before');
    // A pipe takes the records, and cannot say that they are on a disk.
    execFileSync('mkfifo', [`${path}.next`]);
    const written = readFile(`${path}.next`, 'latin1');
    expect(() => new CursorFile(path).save('after')).toThrow(`cannot be saved in ${path}: EINVAL`);
    expect(await written).toContain('before');
    expect(read(path)).toBe('before');
  });

  it('is not written any more where the disk has not taken what was written before', async () => {
    const disk = fs.fdatasync;
    const failing: typeof CursorFile = await (async () => {
      fs.fdatasync = ((_file, done) => done(new Error('EIO: i/o error'))) as typeof disk;
      syncBuiltinESMExports();
      try {
        // Loaded anew, as it takes the function once.
        const { href } = new URL('../../src/cli/cursor-file.ts?on-a-failing-disk', import.meta.url);
        return (await import(href)).CursorFile;
      } finally {
        fs.fdatasync = disk;
        syncBuiltinESMExports();
      }
    })();
    const path = newPath();
    const file = new failing(path);
    const failure = await until(() => {
      try {
        file.save('a place');
        return undefined;
      } catch (error) {
        return error;
      }
    });
    expect(String(failure)).toContain(`cannot be saved in ${path}: EIO`);
    await file.close();
  });
});
