import { chmod, mkdtemp, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openTrustedDocuments, watchTrustedDocuments } from '../../src/app/trusted-documents-file.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { collectingLogger } from '../helpers/gateway.ts';

const LOOK_MS = 1_000;

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-trusted-'));
  file = join(folder, 'documents.json');
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true });
});

const write = (id: string) => writeFile(file, JSON.stringify({ [id]: '{ __typename }' }));

it('a file that cannot be read is told of once, however often it is looked at', async () => {
  await write('one');
  const documents = openTrustedDocuments([file], LOOK_MS);
  const told: (Error | undefined)[] = [];
  const stop = documents.watch((problem) => told.push(problem));
  vi.advanceTimersByTime(3 * LOOK_MS);
  expect(told).toEqual([]);

  await writeFile(file, 'no JSON');
  vi.advanceTimersByTime(3 * LOOK_MS);
  expect(told).toEqual([expect.any(Error)]);
  expect(documents.get('one')).toBe('{ __typename }');

  await write('longer');
  vi.advanceTimersByTime(3 * LOOK_MS);
  expect(told).toEqual([expect.any(Error), undefined]);
  expect([documents.get('one'), documents.get('longer')]).toEqual([undefined, '{ __typename }']);

  stop();
  await write('even longer');
  vi.advanceTimersByTime(3 * LOOK_MS);
  expect(told).toHaveLength(2);
});

it('another file of the same size and the same time is read, as a changed ConfigMap brings one', async () => {
  await write('one');
  const { atime, mtime } = await stat(file);
  await utimes(file, atime, mtime);
  const documents = openTrustedDocuments([file], LOOK_MS);
  const told: unknown[] = [];
  const stop = documents.watch((problem) => told.push(problem));
  const next = `${file}.next`;
  await writeFile(next, JSON.stringify({ two: '{ __typename }' }));
  await utimes(next, atime, mtime);
  await rename(next, file);
  vi.advanceTimersByTime(LOOK_MS);
  expect(told).toEqual([undefined]);
  expect([documents.get('one'), documents.get('two')]).toEqual([undefined, '{ __typename }']);
  stop();
});

it('a file that cannot be looked at any more leaves what was read before, and is told of, until it can', async () => {
  await write('one');
  const documents = openTrustedDocuments([file], LOOK_MS);
  const told: (Error | undefined)[] = [];
  const stop = documents.watch((problem) => told.push(problem));
  // A link that leads to itself: the system refuses to follow it.
  await rm(file);
  await symlink(file, file);
  vi.advanceTimersByTime(3 * LOOK_MS);
  expect(told).toEqual([expect.any(Error)]);
  expect(documents.get('one')).toBe('{ __typename }');

  await rm(file);
  await write('two');
  vi.advanceTimersByTime(LOOK_MS);
  expect(told).toEqual([expect.any(Error), undefined]);
  expect(documents.get('two')).toBe('{ __typename }');
  stop();
});

it('a file that this process may read again, with nothing else about it changed, is read', async () => {
  await write('one');
  const documents = openTrustedDocuments([file], LOOK_MS);
  const told: unknown[] = [];
  const stop = documents.watch((problem) => told.push(problem));
  // Of a superuser the system refuses nothing, so here both looks succeed.
  await chmod(file, 0o200);
  vi.advanceTimersByTime(LOOK_MS);
  await chmod(file, 0o600);
  vi.advanceTimersByTime(LOOK_MS);
  expect(told).toHaveLength(2);
  expect(told.at(-1)).toBeUndefined();
  stop();
});

it('files that are read again, and those that cannot be, are logged and counted until that ends', async () => {
  await write('one');
  const lines: string[] = [];
  const logger = collectingLogger(lines);
  const metrics = createMetrics(() => new Map(), logger);
  const reloads = async () => {
    const name = 'pasarela_trusted_documents_reloads_total';
    const { values = [] } = (await metrics.registry.getSingleMetric(name)?.get()) ?? {};
    return values.map(({ labels, value }) => [labels['outcome'], value]);
  };
  const stop = watchTrustedDocuments(openTrustedDocuments([file], LOOK_MS), metrics, logger);
  await writeFile(file, 'no JSON');
  vi.advanceTimersByTime(LOOK_MS);
  await write('longer');
  vi.advanceTimersByTime(LOOK_MS);
  stop();
  await writeFile(file, 'no JSON either');
  vi.advanceTimersByTime(LOOK_MS);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      level: 'error',
      message: 'The trusted documents have changed and cannot be read: those read before stay in force',
      error: expect.stringContaining(`${JSON.stringify(file)} is neither a JSON object`),
    },
    { level: 'info', message: 'The trusted documents have been read again' },
  ]);
  expect(await reloads()).toEqual(
    expect.arrayContaining([
      ['ok', 1],
      ['error', 1],
    ]),
  );
});

it('where no documents are trusted nothing is watched', () => {
  const logger = collectingLogger([]);
  expect(
    watchTrustedDocuments(
      undefined,
      createMetrics(() => new Map(), logger),
      logger,
    )(),
  ).toBeUndefined();
});
