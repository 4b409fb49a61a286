import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Work } from './documents.ts';
import type { Shot } from './load.ts';
import { type RunningServer, type ServerProgram, startServer } from './process.ts';
import { programFile, type Stub, startStub } from './stub.ts';

/** A server that is measured, and how it is asked. */
export interface Contender extends AsyncDisposable {
  readonly name: ContenderName;
  readonly server: RunningServer;
  /** Whether it asks the upstream about a credential before it believes it. */
  readonly accepts: boolean;
  shot(work: Work, authorization: string): Shot;
}

/** The gateway of another checkout, where `--beside` names one. */
export const EARLIER = 'Pasarela, beside';

/** The folder of that checkout. */
let besideFolder: string | undefined;

/** Has works that ask for it measure the gateway of another checkout as well, whose packages are installed there. */
export function measureBeside(folder: string): void {
  besideFolder = resolve(folder);
}

/** The other checkout's gateway among the contenders, or nobody. */
export const beside = (): readonly ContenderName[] => (besideFolder === undefined ? [] : [EARLIER]);

export type ContenderName =
  | 'baseline'
  | 'baseline, banks cached'
  | 'Pasarela'
  | typeof EARLIER
  | 'Mercurius + JIT'
  | 'Yoga'
  | 'Apollo Server';

const FILES: Readonly<
  Record<Exclude<ContenderName, 'Pasarela' | typeof EARLIER>, readonly [file: string, option?: string]>
> = {
  baseline: ['servers/baseline.ts'],
  'baseline, banks cached': ['servers/baseline.ts', '--cached-banks'],
  'Mercurius + JIT': ['servers/mercurius.ts'],
  Yoga: ['servers/yoga.ts'],
  'Apollo Server': ['servers/apollo.ts'],
};

/** Secret of the gateway's ingress, for those who post webhooks to it. */
export const WEBHOOK_SECRET = 'a secret of the bench that is long enough';

/** The product as its user runs it: what `npm start` runs, and its environment. */
export function gatewayProgram(options: {
  readonly upstreamUrl: string;
  readonly dataDir: string;
  readonly nodeOptions?: readonly string[];
  /** The checkout that it runs from; this one when undefined. */
  readonly folder?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}): ServerProgram {
  return {
    name: 'Pasarela',
    args: [...(options.nodeOptions ?? []), 'src/start.js'],
    cwd: options.folder ?? fileURLToPath(new URL('../..', import.meta.url)),
    env: {
      PORT: '0',
      UPSTREAM_URL: options.upstreamUrl,
      PUBLIC_URL: 'http://gateway.invalid',
      WEBHOOK_SECRET,
      DATA_DIR: options.dataDir,
      ...options.env,
    },
  };
}

/** A folder that is gone at the end. */
export async function temporaryFolder(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'pasarela-bench-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Starts one contender in front of an upstream.
 *
 * @param env variables of the gateway, beside those that it needs
 */
export async function startContender(
  name: ContenderName,
  upstreamUrl: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Contender> {
  if (name === 'Pasarela' || name === EARLIER) {
    const data = await temporaryFolder();
    const folder = name === EARLIER ? besideFolder : undefined;
    const server = await startServer(gatewayProgram({ upstreamUrl, dataDir: data.path, folder, env }));
    return {
      ...graphql(name, server, '/graphql'),
      accepts: true,
      async [Symbol.asyncDispose]() {
        await server.stop();
        await data[Symbol.asyncDispose]();
      },
    };
  }
  const [file, option] = FILES[name];
  const args = [programFile(file), upstreamUrl, ...(option === undefined ? [] : [option])];
  const server = await startServer({ name, args });
  if (file !== 'servers/baseline.ts')
    return graphql(name, server, name === 'Apollo Server' ? '/' : '/graphql');
  return {
    name,
    server,
    accepts: false,
    shot: (work, authorization) => ({ method: 'GET', path: work.floorPath, headers: { authorization } }),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** Starts an upstream and contenders, hands them to `run`, and ends them. */
export async function withContenders<T>(
  names: readonly ContenderName[],
  run: (contenders: readonly Contender[], stub: Stub) => Promise<T>,
): Promise<T> {
  await using stack = new AsyncDisposableStack();
  const stub = stack.use(await startStub());
  const contenders: Contender[] = [];
  for (const name of names) contenders.push(stack.use(await startContender(name, stub.url)));
  return await run(contenders, stub);
}

function graphql(name: ContenderName, server: RunningServer, path: string): Contender {
  return {
    name,
    server,
    accepts: false,
    shot: ({ query, variables }, authorization) => ({
      method: 'POST',
      path,
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    }),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
