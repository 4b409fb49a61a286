import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { hashOf } from '../../../src/graphql/plugins/trusted-documents.ts';
import { HOSTILE_DOCUMENTS, HOSTILE_TEXTS } from '../../helpers/hostile.ts';
import { type Program, startProgram } from '../../helpers/program.ts';
import { ASKING, type RawRequest } from '../../helpers/raw.ts';
import { until } from '../../helpers/until.ts';

/** What one request of a stranger may cost (SECURITY.md), and as much again for what else a process does meanwhile. */
const CPU_MS = 2 * 200;
/** Kept for each was about 1 MB: a sixth of them would fill the process. */
const DOCUMENTS = 300;
/** Far less than what the attacks took: they ended a process of 512 MB. */
const HEAP_MB = 100;
/** What an answer made of errors may measure. */
const ANSWER_CHARACTERS = 20_000;
/** A message of a socket may hold no more. */
const SOCKET_MESSAGE = 64 * 1024;
const NONSENSE = 'e30.e30.nonsense';

let sandbox: Sandbox;
let folder: string;
let program: Program;
let url: string;

/** A gateway in a process of its own, as it is run, with less memory than the attacks would take. */
async function start(
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly [Program, string]> {
  const started = startProgram('src/start.js', {
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    PORT: '0',
    UPSTREAM_URL: sandbox.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    DATA_DIR: await mkdtemp(join(folder, 'data-')),
    INTROSPECTION: 'true',
    ...environment,
  });
  const [, listening = ''] = await started.says(/"url":"(http:[^"]+)"/);
  return [started, listening];
}

/** Milliseconds of CPU that the process has taken so far, garbage collection and compilers included. */
async function cpuOf({ process: { pid } }: Program): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

interface Sent {
  readonly text: string;
  readonly status: number;
}

async function post(
  target: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Sent> {
  const response = await fetch(`${target}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return { text: await response.text(), status: response.status };
}

/** Runs beside all other tests: the gateway waits 20 to 40 s for a client that does not read. */
let unread: Promise<void>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-strangers-'));
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  [program, url] = await start();
  unread = leaveUnread();
  // What comes of it is awaited by its own test.
  unread.catch(() => {});
  // What every operation runs through is compiled before anything is measured.
  for (let time = 0; time < 100; time += 1) {
    await post(url, JSON.stringify({ query: `{ client { id a${time}: id wrong } }` }));
    await post(
      url,
      JSON.stringify({
        query: `query ($t: [EventType!]) { events(types: $t) { nodes { id } } }`,
        variables: { t: [time] },
      }),
    );
  }
});

afterAll(async () => {
  await program?.[Symbol.asyncDispose]();
  await sandbox?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Sends something twice, as what is kept of the first may make the second dearer, and sees what each has cost. */
async function costs(send: () => Promise<unknown>, of = program): Promise<void> {
  for (let time = 0; time < 2; time += 1) {
    const before = await cpuOf(of);
    await send();
    expect((await cpuOf(of)) - before).toBeLessThan(CPU_MS);
  }
}

/** Connections that the process has open. */
async function socketsOf({ process: { pid } }: Program): Promise<number> {
  const names = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  return targets.filter((target) => target.startsWith('socket:')).length;
}

/** Asks for answers in each form, whole or streamed, reads none of them, and resolves once the gateway holds none any more. */
async function leaveUnread(): Promise<void> {
  const [own, address] = await start();
  await using _program = own;
  const { hostname, port } = new URL(address);
  const body = JSON.stringify({
    query: '{ __schema { types { name description fields { name description } } } }',
  });
  const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const idle = await socketsOf(own);
  const clients = ['application/json', 'text/event-stream', 'multipart/mixed'].map((accept) => {
    const request = `${head}Accept: ${accept}\r\n\r\n${body}`;
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    socket.pause();
    socket.write(request.repeat(120));
    return socket;
  });
  await until(async () => (await socketsOf(own)) >= idle + clients.length);
  await until(async () => (await socketsOf(own)) <= idle);
  for (const client of clients) client.destroy();
}

/** The ways to send a body without presenting anything. */
const WAYS: readonly (readonly [string, (request: RawRequest) => Promise<Sent>])[] = [
  ['POST', (request) => post(url, JSON.stringify(request))],
  [
    'POST with a token that is none',
    (request) => post(url, JSON.stringify(request), { authorization: `Bearer ${NONSENSE}` }),
  ],
  ['SSE', (request) => post(url, JSON.stringify(request), { accept: 'text/event-stream' })],
  [
    'GET',
    async (request) => {
      const query = new URLSearchParams({ query: String(request.query).slice(0, 7_000) });
      if (request.variables !== undefined)
        query.set('variables', JSON.stringify(request.variables).slice(0, 7_000));
      const response = await fetch(`${url}/graphql?${query.toString().slice(0, 14_000)}`);
      return { text: await response.text(), status: response.status };
    },
  ],
];

describe.each(WAYS)('over %s', (_way, send) => {
  it.each(Object.entries(HOSTILE_DOCUMENTS))(
    '%s are answered soon and shortly, twice',
    async (_what, request) => {
      await costs(async () => {
        const { text } = await send(request);
        if (!text.includes('"errors"')) return;
        expect(text.length).toBeLessThan(ANSWER_CHARACTERS);
      });
    },
  );

  it.each(HOSTILE_TEXTS.map((text) => [text.slice(0, 20), text] as const))(
    'a key of %j, of variables and of the body, is answered soon and shortly',
    async (_what, text) => {
      const query = 'query V($by:AccountBy!){account(by:$by){id}}';
      const requests: readonly RawRequest[] = [
        { query, variables: { by: { [text]: 1 } } },
        { query, variables: { by: { clabe: text } } },
        { query, variables: { by: text } },
        { query: '{ client { id } }', ...{ [text]: 1 } },
        { query: `{ account(by: { clabe: ${JSON.stringify(text)} }) { id } }` },
        { query: `{ client { id } } ${text}` },
      ];
      for (const request of requests) {
        await costs(async () => expect((await send(request)).text.length).toBeLessThan(ANSWER_CHARACTERS));
      }
    },
  );
});

describe('where only listed documents run', () => {
  const LISTED =
    'query V($by:AccountBy!,$t:[EventType!]){account(by:$by){id} events(types:$t){pageInfo{endCursor}}}';
  const documentId = hashOf(LISTED);
  let strict: string;
  let own: Program;
  beforeAll(async () => {
    const file = join(folder, 'documents.json');
    await writeFile(file, JSON.stringify({ [documentId]: LISTED }));
    [own, strict] = await start({ TRUSTED_DOCUMENTS: file });
    for (let time = 0; time < 100; time += 1)
      await post(strict, JSON.stringify({ documentId, variables: { by: time } }));
  });
  afterAll(() => own?.[Symbol.asyncDispose]());

  it.each(HOSTILE_TEXTS.map((text) => [text.slice(0, 20), text] as const))(
    'a key of %j is answered soon and shortly, twice',
    async (_what, text) => {
      for (const request of [
        { documentId, variables: { by: { [text]: 1 } } },
        { documentId, variables: { by: {}, t: [text] } },
        { documentId, [text]: 1 },
        { query: text },
        { documentId: text },
      ]) {
        await costs(async () => {
          expect((await post(strict, JSON.stringify(request))).text.length).toBeLessThan(ANSWER_CHARACTERS);
        }, own);
      }
    },
  );
});

describe('over a socket of a caller', () => {
  const [, askOverWebSocket] = ASKING[1];
  const small = Object.entries(HOSTILE_DOCUMENTS).filter(
    ([, request]) => JSON.stringify(request).length < SOCKET_MESSAGE - 1_000,
  );

  it.each(small)('%s are answered soon and shortly, twice', async (_what, request) => {
    await costs(async () => {
      const { data, errors } = await askOverWebSocket(`${url}/graphql`, sandbox.accessToken, request);
      if (data === undefined || data === null)
        expect(JSON.stringify(errors).length).toBeLessThan(ANSWER_CHARACTERS);
    });
  });

  it.each(HOSTILE_TEXTS.map((text) => [text.slice(0, 20), text.slice(0, 25_000)] as const))(
    'a key of %j is answered soon and shortly',
    async (_what, text) => {
      await costs(async () => {
        const { errors } = await askOverWebSocket(`${url}/graphql`, sandbox.accessToken, {
          query: 'query V($by:AccountBy!){account(by:$by){id}}',
          variables: { by: { [text]: 1 } },
        });
        expect(JSON.stringify(errors).length).toBeLessThan(ANSWER_CHARACTERS);
      });
    },
  );
});

it.each([
  ['no token', undefined],
  ['a token that is none', NONSENSE],
])(`${DOCUMENTS} new documents with %s, each sent twice, fill nothing`, async (_what, token) => {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const document = (index: number) =>
    `query N${token ? 'n' : ''}${index} { client { id ${Array.from({ length: 25 }, (_, field) => `a${field}: customers(first: ${field + 1}) { nodes { id name } }`).join(' ')} } }`;
  let next = 0;
  const sender = async () => {
    while (next < DOCUMENTS) {
      const body = JSON.stringify({ query: document(next) });
      next += 1;
      for (let time = 0; time < 2; time += 1)
        expect((await post(url, body, headers)).status).toBeLessThan(500);
    }
  };
  await Promise.all(Array.from({ length: 8 }, sender));
  expect((await post(url, '{"query":"{ __typename }"}')).text).toContain('Query');
});

it('answers that nobody reads are held for a while, not for ever', () => unread);
