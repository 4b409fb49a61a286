import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { sendQuery } from '../../helpers/gateway.ts';
import { endWithThisProcess } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import type { GatewayTask, PlacedKill } from './gateway.ts';

export interface GatewayProcess extends AsyncDisposable {
  /** Where the graph is. */
  readonly graphql: string;
  /** Resolves with the name of the kill, once the process has died of one. */
  readonly killed: Promise<string>;
  /** Replaces the kills that are still to come; resolves once the process knows. */
  arm(kills: readonly PlacedKill[]): Promise<void>;
}

/** Longer than any test of this folder. */
export const LIFETIME_SECONDS = 400;

/** Starts `test/scenarios/faults/gateway.ts`. Resolves once it serves. */
export async function startGatewayProcess(task: GatewayTask): Promise<GatewayProcess> {
  const script = join(import.meta.dirname, 'gateway.ts');
  const child: ChildProcess = spawn(process.execPath, [script, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'pasarela-test-compile-cache'), ...process.env },
  });
  endWithThisProcess(child, LIFETIME_SECONDS);
  // What is sent to a process that is dying fails, which is no reason to stop waiting for its end, as `once` would.
  child.on('error', () => {});
  if (child.stdout === null) throw new Error('its output is piped');
  const gone = new Promise<NodeJS.Signals | null>((resolve) =>
    child.once('exit', (_code, signal) => resolve(signal)),
  );
  const url = Promise.withResolvers<string>();
  const killed = Promise.withResolvers<string>();
  let lastWord: string | undefined;
  const lines = createInterface(child.stdout);
  lines.on('line', (line) => {
    const [word, rest = ''] = line.split(' ', 2);
    if (word === 'listening') url.resolve(rest);
    if (word === 'killed') lastWord = rest;
  });
  lines.once('close', async () => {
    const signal = await gone;
    url.reject(new Error('the gateway ended before it served'));
    if (lastWord !== undefined && signal === 'SIGKILL') killed.resolve(lastWord);
  });
  const graphql = `${await url.promise}/graphql`;
  return {
    graphql,
    killed: killed.promise,
    async arm(kills) {
      const armed = new Promise((resolve) => child.once('message', resolve));
      child.send([...kills]);
      await Promise.race([armed, gone]);
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await gone;
    },
  };
}

/** An upstream, and in front of it a gateway that is started again on the same store whenever it has died. */
export interface Cell extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** Kills that have struck, by name. */
  readonly struck: readonly string[];
  /** The gateway that serves now, or as soon as there is one. */
  serving(): Promise<GatewayProcess>;
  arm(kills: readonly PlacedKill[]): Promise<void>;
}

export async function startCell(
  seed: number,
  options: Omit<GatewayTask, 'upstreamUrl' | 'dataDir' | 'kills'>,
): Promise<Cell> {
  // A second refund of one credit, which the spec does not rule out, is performed, so that the ledger shows it.
  const choices = { repeatedRefund: 'performed' } as const;
  const sandbox = await startSandbox({ port: 0, speed: 0, seed, choices });
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-faults-'));
  const struck: string[] = [];
  let kills: readonly PlacedKill[] = [];
  let stopping = false;

  const start = async (): Promise<GatewayProcess> => {
    const gateway = await startGatewayProcess({ ...options, upstreamUrl: sandbox.url, dataDir, kills });
    void gateway.killed.then((name) => {
      struck.push(name);
      kills = kills.filter((kill) => kill.name !== name);
      if (!stopping) serving = start();
    });
    // Who is calling is found out before the app comes back: no payment is told of a failure to do so.
    await until(async () => {
      const { errors } = await sendQuery(gateway.graphql, '{ client { id } }', {}, bearer(sandbox));
      return errors === undefined;
    });
    return gateway;
  };
  let serving = start();
  await serving;
  return {
    sandbox,
    struck,
    serving: () => serving,
    async arm(next) {
      kills = next;
      await (await serving).arm(next);
    },
    async [Symbol.asyncDispose]() {
      stopping = true;
      await (await serving)[Symbol.asyncDispose]();
      await sandbox.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

const bearer = ({ accessToken }: Sandbox) => ({ authorization: `Bearer ${accessToken}` });
