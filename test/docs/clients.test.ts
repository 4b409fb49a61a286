import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendQuery } from '../helpers/gateway.ts';
import { folder, installPackages, run } from '../helpers/packages.ts';
import { endWithThisProcess } from '../helpers/redis.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';

const PACKAGES = 'test/clients';
const CLIENTS = ['graphql-ws', 'apollo', 'urql', 'relay', 'graphql-sse', 'event-source'] as const;
/** What the others import; they follow nothing themselves. */
const SHARED = ['app', 'socket'];
/** Long enough to connect with, and short enough to be outlived. */
const TOKEN_TTL_SECONDS = 6;
const PATIENCE = { timeout: 25_000 };

const page = await readFile(folder('docs/clients.md'), 'utf8');
/** Every JavaScript block by the file name in its first line. */
const snippets = new Map(
  [...page.matchAll(/^```js\n\/\/ (\S+)\.js\n(.*?)^```$/gms)].map(([, name = '', code = '']) => [name, code]),
);

/** A client's program, in a folder of its own. */
class Client {
  readonly name: string;
  readonly #program: string;
  readonly #cwd: string;
  #process: ChildProcess | undefined;
  #output = '';

  constructor(name: string, work: string) {
    this.name = name;
    this.#program = join(work, `${name}.js`);
    this.#cwd = join(work, name);
  }

  async start(): Promise<void> {
    await mkdir(this.#cwd, { recursive: true });
    await copyFile(join(this.#cwd, '..', 'possible-types.json'), join(this.#cwd, 'possible-types.json'));
    const child = spawn(process.execPath, [this.#program], { cwd: this.#cwd });
    endWithThisProcess(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        this.#output += String(chunk);
      });
    }
    this.#process = child;
  }

  async kill(): Promise<void> {
    if (this.#process === undefined || this.#process.exitCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }

  /** What it has kept, in order: where it began, what each credit was for, and where it was told of a gap. */
  async kept(): Promise<string[]> {
    const file = join(this.#cwd, 'credits.jsonl');
    if (!existsSync(file)) return [this.#output];
    const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
    return lines.map((line) => {
      const { gap, paymentConcept } = JSON.parse(line) as { gap?: boolean; paymentConcept?: string };
      return gap === true ? 'gap' : (paymentConcept ?? 'start');
    });
  }
}

let gateway: RestartableGateway;
let work: string;
let clients: Client[];

beforeAll(async () => {
  await installPackages(PACKAGES);
  gateway = await startRestartable({}, { tokenTtlSeconds: TOKEN_TTL_SECONDS });
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
  await prepare();
  clients = CLIENTS.map((name) => new Client(name, work));
  await Promise.all(clients.map((client) => client.start()));
}, 180_000);
afterAll(async () => {
  await Promise.all((clients ?? []).map((client) => client.kill()));
  await gateway?.[Symbol.asyncDispose]();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

/** Writes the page's files as a reader would, with the addresses of this test; what the page generates is generated. */
async function prepare(): Promise<void> {
  for (const [name, code] of snippets) {
    const here = code
      .replaceAll('http://127.0.0.1:4000/graphql', gateway.graphql)
      .replaceAll('http://127.0.0.1:4010', gateway.sandbox.url);
    await writeFile(join(work, `${name}.js`), here);
  }
  const possibleTypes = await run(
    process.execPath,
    ['src/cli/pasarela.ts', 'schema', '--possible-types'],
    folder('.'),
  );
  await writeFile(join(work, 'possible-types.json'), possibleTypes);
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  const [, relayConfig = ''] = /^```json\n(\{\n {2}"src".*?)^```$/ms.exec(page) ?? [];
  await writeFile(join(work, 'relay.config.json'), relayConfig);
  await run(folder(`${PACKAGES}/node_modules/.bin/relay-compiler`), [], work);
  await run(process.execPath, [folder(`${PACKAGES}/compile-relay.js`), join(work, 'relay.js')], work);
}

async function credits(...concepts: string[]): Promise<void> {
  for (const concept of concepts) await gateway.credit(concept);
}

/** Waits until every client has kept exactly this. */
async function allKeep(...expected: string[]): Promise<void> {
  const kept = async () =>
    Object.fromEntries(await Promise.all(clients.map(async (client) => [client.name, await client.kept()])));
  const wanted = Object.fromEntries(CLIENTS.map((name) => [name, expected]));
  await expect.poll(kept, PATIENCE).toEqual(wanted);
}

it('every JavaScript block of the page is a file that is run here', () => {
  expect(snippets.size).toBe([...page.matchAll(/^```(js|javascript|jsx|ts|typescript)\b/gm)].length);
  expect([...snippets.keys()].toSorted()).toEqual([...CLIENTS, ...SHARED].toSorted());
});

describe('every client of the page', { timeout: 40_000 }, () => {
  it('queries where the log ends, and keeps the credits that arrive after that', async () => {
    await allKeep('start');
    await credits('one', 'two', 'three');
    await allKeep('start', 'one', 'two', 'three');
  });

  it('goes on without a gap or a repeat when the gateway was killed', async () => {
    await gateway.kill();
    await credits('four');
    await gateway.start();
    await gateway.allDelivered();
    await credits('five');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five');
  });

  it('goes on with another token when the one that it connected with has expired', async () => {
    const headers = { authorization: `Bearer ${gateway.sandbox.accessToken}` };
    await until(async () => {
      const { errors } = await sendQuery(gateway.graphql, '{ client { id } }', {}, headers);
      return errors?.[0]?.extensions['code'] === 'UNAUTHENTICATED';
    });
    await credits('six');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five', 'six');
  });

  it('goes on without a gap or a repeat when it was killed itself', async () => {
    await Promise.all(clients.map((client) => client.kill()));
    await credits('seven', 'eight');
    await Promise.all(clients.map((client) => client.start()));
    await credits('nine');
    await allKeep('start', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine');
  });

  it('learns of a gap when the log was lost, and goes on from what it holds', async () => {
    await gateway.allDelivered();
    await gateway.kill();
    await gateway.loseLog();
    await gateway.start();
    await credits('ten');
    const before = ['start', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
    await allKeep(...before, 'gap', 'ten');
  });
});
