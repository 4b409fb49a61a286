import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { MEMORY_FOLDER } from './memory-folder.ts';

/** Longer than any file of tests. */
const LIFETIME_SECONDS = 1_800;

/** Durable as the gateway asks for it. */
export const DURABLE = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'] as const;

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  /** A connection for the test's own commands; ended by `stop`. */
  readonly admin: Redis;
  /** SIGKILL; resolves once the process is gone. The data stays. */
  kill(): Promise<void>;
  /** SIGSTOP: the process lives and answers nothing. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** Starts again on the same port and data; resolves once it answers. */
  start(): Promise<void>;
  /** Ends the process and removes its data. */
  stop(): Promise<void>;
}

/**
 * Starts a real Redis (or Valkey) of this test's own, in a new folder, on a free port of 127.0.0.1. The folder is in memory, so that no
 * write waits for a busy disk longer than the gateway waits for Redis. `leading` are arguments that have to come before all
 * others, made once the folder is there.
 */
export async function startRedis(
  args: readonly string[] = DURABLE,
  leading: (dir: string) => Promise<readonly string[]> = async () => [],
  lifetimeSeconds = LIFETIME_SECONDS,
  attempts = 5,
): Promise<RedisServer> {
  const dir = await mkdtemp(join(MEMORY_FOLDER, 'pasarela-redis-'));
  const port = await reservedPort();
  const admin = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => 50 });
  admin.on('error', () => {});
  const first = await leading(dir);
  let running: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const fixed = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir];
    running = spawn(redisProgram(), [...first, ...fixed, ...args], { stdio: 'ignore' });
    endWithThisProcess(running, lifetimeSeconds);
    const answers = answering(port, running.pid);
    // Told by the race below; a server that has gone is asked no longer.
    answers.catch(() => {});
    const gone = once(running, 'exit').then(() => {
      throw new Error(`redis-server ended before it answered on port ${port}`);
    });
    gone.catch(() => {});
    await Promise.race([answers, gone]);
  };
  const kill = async (): Promise<void> => {
    const process = running;
    running = undefined;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, 'exit');
    process.kill('SIGKILL');
    await gone;
  };
  const stop = async (): Promise<void> => {
    admin.disconnect();
    await kill();
    await rm(dir, { recursive: true, force: true });
  };

  try {
    await start();
  } catch (error) {
    await stop();
    // Another process has taken the port, or that of the bus, since it was found free.
    if (attempts > 1) return startRedis(args, leading, lifetimeSeconds, attempts - 1);
    throw error;
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    dir,
    admin,
    kill,
    freeze: () => void running?.kill('SIGSTOP'),
    thaw: () => void running?.kill('SIGCONT'),
    start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const reservationOf = (port: number): string => join(MEMORY_FOLDER, `pasarela-redis-port-${port}`);

/**
 * A free port that no other test is given while this server is dead: its replicas, clients and Sentinels go on looking for it there, and
 * another test's Redis would have a replica that it never asked for.
 */
async function reservedPort(): Promise<number> {
  for (;;) {
    // A Cluster's bus listens 10,000 ports higher.
    const port = await freePort(55_000);
    const file = reservationOf(port);
    const left = await stat(file).catch(() => undefined);
    // A test that was ended without a word has left its own.
    if (left !== undefined && Date.now() - left.mtimeMs > 1_000 * LIFETIME_SECONDS)
      await rm(file, { force: true });
    const isOurs = await writeFile(file, '', { flag: 'wx' }).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    if (isOurs) return port;
  }
}

/** The server program of this machine: redis-server, else valkey-server. */
function redisProgram(): string {
  const program = ['redis-server', 'valkey-server'].find(
    (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0,
  );
  if (program === undefined)
    throw new Error('wanted redis-server or valkey-server on the PATH, found neither');
  return program;
}

/** A port of 127.0.0.1, at most `highest`, that was free a moment ago. */
export async function freePort(highest = 65_535): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port <= highest ? address.port : freePort(highest);
}

/** What a child has between SIGTERM and SIGKILL, in seconds, once the process that started it has gone. */
const GRACE_SECONDS = 3;
/** Reads from a pipe that ends with this process. A child that has children of its own, as nginx does, ends them at SIGTERM. */
const GUARD = `(sleep "$2"; kill -9 "$1") & read _; kill "$1" && kill -CONT "$1" && sleep ${GRACE_SECONDS} && kill -9 "$1"; kill -9 0`;

/**
 * A test that is cut short must leave no server behind, even when its own process is ended without a word: another process
 * ends the child as soon as this one is gone, or after a while, unless the child has gone by itself.
 */
export function endWithThisProcess(child: ChildProcess, lifetimeSeconds = LIFETIME_SECONDS): void {
  if (child.pid === undefined) return;
  const guard = spawn('sh', ['-c', GUARD, 'sh', String(child.pid), String(lifetimeSeconds)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  guard.unref();
  // A pipe to a process is a socket, which is kept open without keeping this process.
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  child.once('exit', () => {
    try {
      // A detached process leads a group, of which `sleep` is.
      if (guard.pid !== undefined) process.kill(-guard.pid, 'SIGKILL');
    } catch (error) {
      // It has ended by itself: the child was the last that it waited for, or has been ended by it.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  });
}

/** Resolves once this very process answers: where another has taken the port meanwhile, a Redis of another test would. */
async function answering(port: number, pid: number | undefined): Promise<void> {
  const redis = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 20, maxRetriesPerRequest: 500 });
  redis.on('error', () => {});
  try {
    const info = await redis.info('server');
    if (!info.includes(`process_id:${pid}\r\n`)) throw new Error(`another Redis answers on port ${port}`);
  } finally {
    redis.disconnect();
  }
}
