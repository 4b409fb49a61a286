import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TestRedis extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
}

/** A redis-server of its own on a free port, in a folder of its own. */
export async function startRedis(...args: string[]): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'pasarela-redis-'));
  const port = await freePort();
  const base = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
  const server = spawn('redis-server', [...base, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise<void>((resolve, reject) => {
    server.once('exit', () => reject(new Error('redis-server ended at once')));
    server.stdout.on('data', (line: Buffer) => {
      if (line.toString().includes('Ready to accept connections')) resolve();
    });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: server.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      if (server.exitCode === null && server.signalCode === null) {
        const ended = once(server, 'exit');
        server.kill('SIGKILL');
        await ended;
      }
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
