import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packPackage } from '../../scripts/packing.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { folder, installPackages, run } from '../helpers/packages.ts';
import { emptyProject, install } from '../helpers/packed.ts';
import { endWithThisProcess } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

/** Node 20, the oldest that the package is for. */
const NODE = folder('test/packed/node_modules/.bin/node');
const CREDIT = /^Ana Torres: 1250\.00 MXN$/m;

let gateway: RunningGateway;
let project: string;
beforeAll(async () => {
  await installPackages('test/packed');
  const packed = await mkdtemp(join(tmpdir(), 'pasarela-page-'));
  project = await emptyProject();
  await install(project, [await packPackage('client', packed)]);
  await rm(packed, { recursive: true, force: true });
  gateway = await startGateway({ config: PATIENT });
});
afterAll(async () => {
  await gateway?.stop();
  if (project !== undefined) await rm(project, { recursive: true, force: true });
});

/** The programs of the page that npm shows, by their names, with the addresses of this test. */
async function programs(): Promise<ReadonlyMap<string, string>> {
  const page = await readFile(join(project, 'node_modules/@pasarela/client', 'README.md'), 'utf8');
  const found = page.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms);
  return new Map(
    [...found].map(([, name = '', code = '']) => [
      name,
      code
        .replaceAll('http://127.0.0.1:4000/graphql', gateway.graphql)
        .replaceAll(/http:\/\/127\.0\.0\.1:4010\b/g, gateway.sandbox.url),
    ]),
  );
}

it('the programs of the page run as they stand on Node 20, beside the packed file alone', async () => {
  const found = await programs();
  expect([...found.keys()]).toEqual(['credits.mjs', 'pay.mjs']);
  for (const [name, code] of found) await writeFile(join(project, name), code);
  expect(await run(NODE, ['--version'], project)).toMatch(/^v20\./);
  expect(await run(NODE, ['pay.mjs'], project)).toMatch(/^done \{/);

  const credits = spawn(NODE, ['credits.mjs'], { cwd: project });
  endWithThisProcess(credits);
  let shown = '';
  for (const stream of [credits.stdout, credits.stderr])
    stream.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
  const shows = (what: RegExp) => until(() => what.test(shown) || credits.exitCode !== null);
  await shows(/^live$/m);
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const credit = { clabe: accounts[0].clabe, amount: '1250.00', payerName: 'Ana Torres' };
  await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', credit);
  await shows(CREDIT);
  credits.kill();
  expect(shown).toMatch(CREDIT);
});
