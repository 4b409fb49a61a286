import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Certificates, makeCertificates } from './private-ca.ts';
import { listens, startProxy, withOwn } from './proxies.ts';
import { freePort } from './redis.ts';
import { until } from './until.ts';

const FOLDER = new URL('../../deploy/redis/', import.meta.url);
const PAGE = new URL('../../docs/redis.md', import.meta.url);
const FIRST = '10.0.0.21 6379';

/** A Redis or a Sentinel that runs on a file of `deploy/redis`. */
export interface DeployedServer {
  readonly port: number;
  readonly file: string;
  /** SIGKILL; resolves once the process is gone. */
  kill(): Promise<void>;
  /** Starts it again, on what it has written into its file. */
  start(): Promise<void>;
}

/** Two Redis under three Sentinels, by the files of `deploy/redis`. */
export interface DeployedRedis extends AsyncDisposable {
  readonly redis: readonly [DeployedServer, DeployedServer];
  readonly sentinels: readonly DeployedServer[];
  readonly certificates: Certificates;
  /** As docs/redis.md has it, with the addresses of this machine. */
  readonly url: string;
}

/** Starts the group as docs/redis.md says, each server in a folder of its own, with the addresses and files of this machine. */
export async function startDeployedRedis(lifetimeSeconds: number): Promise<DeployedRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-deployed-'));
  const certificates = await makeCertificates(folder);
  const running = new Set<ChildProcess>();
  const startOne = async (
    name: 'redis.conf' | 'sentinel.conf',
    own: Readonly<Record<string, string>> = {},
    more = '',
  ): Promise<DeployedServer> => {
    const port = await freePort();
    const dir = await mkdtemp(join(folder, 'server-'));
    const file = join(dir, name);
    const isRedis = name === 'redis.conf';
    if (isRedis) await copyFile(new URL('users.acl', FOLDER), join(dir, 'users.acl'));
    const text = await withOwn(new URL(name, FOLDER), {
      'bind * -::*': 'bind 127.0.0.1',
      [isRedis ? 'tls-port 6379' : 'tls-port 26379']: `tls-port ${port}`,
      '/etc/redis/tls/redis.crt': certificates.certificate,
      '/etc/redis/tls/redis.key': certificates.key,
      '/etc/redis/tls/ca.crt': certificates.authority,
      'dir /var/lib/redis': `dir ${dir}`,
      ...(isRedis && { '/etc/redis/users.acl': join(dir, 'users.acl') }),
      ...own,
    });
    await writeFile(file, `${text}${more}`);
    let process: ChildProcess;
    const start = async () => {
      process = startProxy('redis-server', [file, ...(isRedis ? [] : ['--sentinel'])], lifetimeSeconds);
      running.add(process);
      await until(() => listens(port));
    };
    await start();
    return {
      port,
      file,
      start,
      async kill() {
        const gone = once(process, 'exit');
        running.delete(process);
        process.kill('SIGKILL');
        await gone;
      },
    };
  };
  const first = await startOne('redis.conf');
  const here = `127.0.0.1 ${first.port}`;
  // As the file says of the second server.
  if (!(await readFile(new URL('redis.conf', FOLDER), 'utf8')).includes(`replicaof ${FIRST}`))
    throw new Error('redis.conf does not say how the second server begins.');
  const second = await startOne('redis.conf', {}, `replicaof ${here}\n`);
  const sentinels: DeployedServer[] = [];
  for (let number = 0; number < 3; number += 1)
    sentinels.push(await startOne('sentinel.conf', { [FIRST]: here }));
  const names = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const [, url = ''] =
    /REDIS_URL=(rediss\+sentinel:\S+sentinelPassword=\S+)/.exec(await readFile(PAGE, 'utf8')) ?? [];
  return {
    redis: [first, second],
    sentinels,
    certificates,
    url: url.replace(/@[^/]+/, `@${names}`),
    async [Symbol.asyncDispose]() {
      for (const process of running) process.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
