import { execFile } from 'node:child_process';
import { access, copyFile, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { pasarela } from '../cli/run.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { blocks, ROOT, readPage } from './pages.ts';

const run = promisify(execFile);
const SECRET = 'the secret of now that is long enough';

/** The page on running the gateway, with those on its parts. */
const PAGES = ['operations', 'kubernetes', 'proxies', 'sizing', 'secrets', 'redis', 'monitoring', 'alerts'];

let page: string;
let redis: RedisServer;
let gateway: RunningGateway;
let checkout: string;
let environment: Record<string, string>;

/** A gateway in front of the REST service, and a checkout to run commands in, so that what they write is nobody's. */
beforeAll(async () => {
  page = (await Promise.all(PAGES.map((name) => readPage(`docs/${name}.md`)))).join('\n');
  redis = await startRedis();
  gateway = await startGateway({
    config: { ...PATIENT, redisUrl: new Secret(redis.url), webhookSecrets: [new Secret(SECRET)] },
  });
  checkout = await mkdtemp(join(tmpdir(), 'pasarela-checkout-'));
  await copyFile(new URL('package.json', ROOT), join(checkout, 'package.json'));
  for (const name of ['src', 'node_modules'])
    await symlink(fileURLToPath(new URL(name, ROOT)), join(checkout, name));
  const { PATH = '', HOME = '' } = process.env;
  environment = {
    PATH,
    HOME,
    UPSTREAM_URL: gateway.sandbox.url,
    PASARELA_TOKEN: gateway.sandbox.accessToken,
    PUBLIC_URL: gateway.url,
    WEBHOOK_SECRET: SECRET,
    REDIS_URL: redis.url,
    PORT: new URL(gateway.url).port,
    DATA_DIR: checkout,
  };
});
afterAll(async () => {
  await gateway.stop();
  await redis.stop();
  await rm(checkout, { recursive: true });
});

describe('docs/operations.md and the pages on its parts', () => {
  it('prints commands that run', async () => {
    const scripts = blocks(page, 'sh');
    expect(scripts.length).toBeGreaterThan(3);
    for (const { text } of scripts) {
      const options = { cwd: checkout, env: environment, maxBuffer: 32 * 1024 * 1024 };
      await run('bash', ['-c', `set -euo pipefail\n${text}`], options);
    }
    const doctor = JSON.parse(await readFile(join(checkout, 'doctor.json'), 'utf8'));
    expect(doctor.ok).toBe(true);
    const possibleTypes = JSON.parse(await readFile(join(checkout, 'possible-types.json'), 'utf8'));
    expect(possibleTypes).toHaveProperty('Event');
  });

  it('leaves to other programs only what is theirs, and names files and scripts that exist', async () => {
    const { scripts } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'));
    for (const { text } of blocks(page, 'console')) {
      for (const line of text.trim().split('\n')) {
        expect(line).toMatch(/^\$ (docker|helm|kubectl|promtool|sqlite3|cp|npm run) /);
        for (const [, script] of line.matchAll(/npm run ([\w:]+)/g))
          expect(scripts).toHaveProperty([script ?? '']);
        for (const [file] of line.matchAll(/\bdeploy\/[\w./-]+/g)) {
          // Made by the line before it.
          if (!file.endsWith('/secret.yaml'))
            await expect(access(new URL(file, ROOT))).resolves.toBeUndefined();
        }
      }
    }
  });

  it('names the commands that the command line has', async () => {
    const rows = [...page.matchAll(/^\| `pasarela (\w+)/gm)].map(([, command]) => command);
    const { stdout } = await pasarela(['--help']);
    expect([...new Set(rows)]).toEqual(
      [...stdout.matchAll(/^ {2}(\w+) +\S/gm)].map(([, command]) => command),
    );
  });

  it('names Redis settings that satisfy the doctor', async () => {
    const settings = blocks(page, 'text').find(({ text }) => text.startsWith('appendonly'))?.text ?? '';
    const args = settings
      .trim()
      .split('\n')
      .flatMap((line) => `--${line}`.split(' '));
    await using server = await startRedis(args);
    const { stdout } = await pasarela(['doctor', '--json'], { ...environment, REDIS_URL: server.url });
    expect(JSON.parse(stdout).findings).not.toContainEqual(expect.objectContaining({ status: 'warning' }));
  });

  it('names rights in Redis with which the gateway does all of its work', async () => {
    const line = blocks(page, 'text').find(({ text }) => text.startsWith('ACL SETUSER'))?.text ?? '';
    const [command = '', ...args] = line.trim().split(' ');
    await using server = await startRedis();
    await server.admin.call(command, ...args);
    const url = server.url.replace('//', '//gateway:password@');
    await using careful = await startGateway({ config: { ...PATIENT, redisUrl: new Secret(url) } });
    const { accounts, centralizingInstrumentId, cardInstrumentIds } = await control(
      careful.sandbox,
      'GET',
      '/sandbox',
    );
    const credit = { clabe: accounts[0].clabe, amount: '1.00' };
    await control(careful.sandbox, 'POST', '/sandbox/spei-credits', credit);
    await until(async () => {
      const { data } = await careful.query('{ events { nodes { id } } }');
      return data?.events?.nodes.length === 1;
    });
    const { data, errors } = await careful.query(
      'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }',
      {
        input: {
          idempotencyKey: 'with-few-rights',
          sourceInstrumentId: centralizingInstrumentId,
          destinationInstrumentId: cardInstrumentIds[0],
          amount: '1.00',
          description: 'Lunch',
          externalReference: '1',
        },
      },
    );
    expect(errors).toBeUndefined();
    expect(data.createMoneyOut.__typename).toBe('CreateMoneyOutSuccess');
    await until(async () => {
      const { status, spooled } = await (await fetch(`${careful.url}/readyz`)).json();
      return status === 'ready' && spooled === 0;
    });
    // A busy machine may have it warn of an answer that took long.
    expect(careful.log.filter((entry) => /NOPERM|permission|rights/.test(entry))).toEqual([]);
    const doctor = await pasarela(['doctor', '--json'], { ...environment, REDIS_URL: url });
    const { findings }: { findings: { check: string; status: string }[] } = JSON.parse(doctor.stdout);
    expect(findings.filter(({ check }) => check === 'redis').map(({ status }) => status)).toEqual(['ok']);
  });
});
