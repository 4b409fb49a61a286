import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { cep, speiCredit } from '../helpers/ingress.ts';
import { blocks, ROOT, readPage } from './pages.ts';

const run = promisify(execFile);

let page: string;
let folder: string;
let gateway: RunningGateway;
beforeAll(async () => {
  page = await readPage('docs/events.md');
  folder = await mkdtemp(join(tmpdir(), 'pasarela-events-page-'));
  gateway = await startGateway({ config: { ...PATIENT, dataDir: folder } });
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

/** Runs a block in the project's folder, with the addresses that are there instead of those of `npm start`. */
async function shell(text: string): Promise<string> {
  const here = text
    .replace('http://127.0.0.1:4000', gateway.url)
    .replace(/http:\/\/127\.0\.0\.1:4010\b/, gateway.sandbox.url);
  expect(text).toMatch(/127\.0\.0\.1|DATA_DIR/);
  const { PATH = '', HOME = '' } = process.env;
  const options = { cwd: fileURLToPath(ROOT), env: { PATH, HOME, DATA_DIR: folder } };
  return (await run('bash', ['-c', `set -euo pipefail\n${here}`], options)).stdout;
}

const deliver = async (type: 'CEP' | 'MONEY_IN', body: unknown): Promise<number> => {
  const address = gateway.ingress.url(gateway.sandbox.clientId, type) ?? '';
  return (await fetch(address, { method: 'POST', body: JSON.stringify(body) })).status;
};

it('a stream of docs/events.md that begins behind a cursor has both credits', async () => {
  const [script] = blocks(page, 'sh');
  const output = await shell(script?.text ?? '');
  const streamed = output.split('\n').filter((line) => line.startsWith('data: '));
  expect(streamed.map((line) => JSON.parse(line.slice(6)).data.moneyIn.amount.amount)).toEqual([
    '10.00',
    '20.00',
  ]);
});

it('the quarantine is shown as docs/events.md prints it', async () => {
  const { body, ...incomplete } = speiCredit();
  expect(body).toBeDefined();
  expect(await deliver('MONEY_IN', incomplete)).toBe(400);
  const [, script] = blocks(page, 'sh');
  expect(await shell(script?.text ?? '')).toMatch(/type: 'MONEY_IN',\s+reason: 'incomplete'/);
});

it('a cursor that docs/events.md moves on skips nothing', async () => {
  const [block] = blocks(page, 'js');
  const file = join(folder, 'move-on.mjs');
  await writeFile(file, block?.text ?? '');
  const { moveOn } = await import(pathToFileURL(file).href);
  const query = async (document: string, variables?: Record<string, unknown>) =>
    (await gateway.query(document, variables)).data;
  const first: string = (await query('{ eventCursor }')).eventCursor;

  expect(await deliver('MONEY_IN', speiCredit())).toBe(201);
  const moved: string = await moveOn(query, first);
  expect(moved).not.toBe(first);
  expect(moved).toBe((await query('{ eventCursor }')).eventCursor);

  expect(await deliver('CEP', cep(gateway.sandbox.clientId, 'PENDING'))).toBe(201);
  expect(await deliver('MONEY_IN', speiCredit())).toBe(201);
  expect(await moveOn(query, moved)).toBe(moved);

  const end: string = (await query('{ eventCursor }')).eventCursor;
  const withoutItsEnd = async (document: string, variables?: Record<string, unknown>) =>
    document === '{ eventCursor }' ? { eventCursor: null } : query(document, variables);
  expect(await moveOn(withoutItsEnd, end)).toBe(end);
});

it('every command that docs/events.md names exists', async () => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readPage('package.json'));
  const named = [...page.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script);
  expect(named).toEqual(['soak']);
  for (const script of named) expect(Object.keys(scripts)).toContain(script);
  const options = [...page.matchAll(/npm run soak -- (.*)$/gm)].flatMap(([, given = '']) =>
    given.match(/--\w+/g),
  );
  const { stdout } = await run(process.execPath, ['test/scenarios/soak/soak.ts', '--help'], {
    cwd: fileURLToPath(ROOT),
  });
  for (const option of options) expect(stdout).toContain(option);
});

it('the seconds after which docs/events.md says that a credit is answered are those of its waits', async () => {
  const waits = [
    ['src/ingress/body.ts', 'DEADLINE_MS'],
    ['src/events/spool/emptying.ts', 'PATIENCE_MS'],
    ['src/events/redis/redis-log.ts', 'TIMEOUT_MS'],
    ['src/ingress/decider.ts', 'TIMEOUT_MS'],
    ['src/events/redis/redis-log.ts', 'TIMEOUT_MS'],
  ] as const;
  const seconds = await Promise.all(
    waits.map(async ([file, name]) => {
      const [, value] = new RegExp(`^const ${name} = (\\d+);`, 'm').exec(await readPage(file)) ?? [];
      return Number(value) / 1000;
    }),
  );
  const told = /^The gateway answers (\d+) s after the headers at most: (.*)$/m.exec(page);
  expect([...(told?.[2] ?? '').matchAll(/(\d+) s for/g)].map(([, each]) => Number(each))).toEqual(seconds);
  expect(Number(told?.[1])).toBe(seconds.reduce((sum, each) => sum + each));
});
