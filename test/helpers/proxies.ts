import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Certificates } from './private-ca.ts';
import { endWithThisProcess } from './redis.ts';

const PEM = 'proxy.pem';
const HAPROXY = new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url);
const NGINX = new URL('../../deploy/nginx/nginx.conf', import.meta.url);
/** Where nginx keeps bodies that wait; only root may write where it does so by itself. */
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** Writes the certificate and its key into one file, as HAProxy reads them. */
export async function writePem(folder: string, { certificate, key }: Certificates): Promise<void> {
  const pem = (await readFile(certificate, 'utf8')) + (await readFile(key, 'utf8'));
  await writeFile(join(folder, PEM), pem);
}

interface Ports {
  readonly haproxyPort: number;
  readonly nginxPort: number;
  readonly ports: readonly [number, number];
  readonly certificates: Certificates;
}

/** Where the logs of nginx lie in the folder of its configuration. */
export const NGINX_LOGS = { access: 'nginx-access.log', error: 'nginx-error.log' };

/**
 * Writes the configurations of `deploy` for both proxies into a folder, with the addresses and files of this machine in the place of theirs.
 *
 * @returns what the programs are started with
 * @throws where a file does not hold what is to be replaced
 */
export async function writeProxies(
  folder: string,
  { haproxyPort, nginxPort, ports: [a, b], certificates }: Ports,
): Promise<{ readonly haproxy: readonly string[]; readonly nginx: readonly string[] }> {
  await writePem(folder, certificates);
  const gateways = { '10.0.0.11:4000': `127.0.0.1:${a}`, '10.0.0.12:4000': `127.0.0.1:${b}` };
  const haproxy = await withOwn(HAPROXY, {
    ...gateways,
    'bind :443': `bind 127.0.0.1:${haproxyPort}`,
    '/etc/haproxy/pasarela.pem': join(folder, PEM),
    'maxconn 50000': 'maxconn 8000',
  });
  const nginx = await withOwn(NGINX, {
    ...gateways,
    'listen 443': `listen 127.0.0.1:${nginxPort}`,
    '/etc/nginx/pasarela.crt': certificates.certificate,
    '/etc/nginx/pasarela.key': certificates.key,
    '/var/log/nginx/access.log': join(folder, NGINX_LOGS.access),
    '/var/log/nginx/error.log;': `${join(folder, NGINX_LOGS.error)};`,
    '/var/log/nginx/error.log crit;': `${join(folder, NGINX_LOGS.error)} crit;`,
    '/run/nginx.pid': join(folder, 'nginx.pid'),
    'worker_processes auto;': 'worker_processes 1;',
    'worker_rlimit_nofile 65536;': '',
    'worker_connections 30000;': 'worker_connections 8000;',
    'http {': `http {\n${TEMPORARY.map((kind) => `  ${kind}_temp_path ${folder};`).join('\n')}`,
  });
  const [haproxyFile, nginxFile] = [join(folder, 'haproxy.cfg'), join(folder, 'nginx.conf')];
  await writeFile(haproxyFile, haproxy);
  await writeFile(nginxFile, nginx);
  return {
    haproxy: ['-W', '-db', '-f', haproxyFile],
    nginx: ['-c', nginxFile, '-p', folder, '-e', join(folder, NGINX_LOGS.error), '-g', 'daemon off;'],
  };
}

/** The text of a file, with what stands in it once in the place of what is not of this machine. */
export async function withOwn(file: URL, own: Readonly<Record<string, string>>): Promise<string> {
  let text = await readFile(file, 'utf8');
  for (const [theirs, ours] of Object.entries(own)) {
    if (text.split(theirs).length !== 2) throw new Error(`${file.pathname} does not hold "${theirs}" once.`);
    text = text.replace(theirs, () => ours);
  }
  return text;
}

/** Starts a program of the system, which has to stay until it is ended. `output` gets what it writes to its standard output. */
export function startProxy(
  program: string,
  args: readonly string[],
  lifetimeSeconds: number,
  output?: (text: string) => void,
): ChildProcess {
  const child = spawn(program, args, { stdio: ['ignore', output ? 'pipe' : 'ignore', 'ignore'] });
  child.stdout?.on('data', (chunk: Buffer) => output?.(chunk.toString()));
  endWithThisProcess(child, lifetimeSeconds);
  void once(child, 'error').then(([error]) => {
    throw error;
  });
  return child;
}

/** Whether somebody listens on a port of this machine. */
export const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket
      .once('connect', () => {
        socket.destroy();
        resolve(true);
      })
      .once('error', () => resolve(false));
    socket.setTimeout(1_000, () => socket.destroy());
  });
