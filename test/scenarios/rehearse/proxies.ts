import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endWithThisProcess } from '../../helpers/redis.ts';

const run = promisify(execFile);

/** Makes an authority of this night's own in a folder. @returns its certificate, in PEM */
export async function makeAuthority(folder: string): Promise<string> {
  const path = join(folder, 'ca.crt');
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-keyout', join(folder, 'ca.key'), '-out', path, '-subj', '/CN=rehearsal'],
  ]);
  return readFile(path, 'utf8');
}

/** One file with the certificate and its key, as both proxies read it. */
export async function makeCertificate(folder: string): Promise<void> {
  const at = (name: string) => join(folder, name);
  await writeFile(at('names'), 'subjectAltName=DNS:localhost');
  await run('openssl', [
    ...[
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      '/CN=localhost',
    ],
    ...['-keyout', at('proxy.key'), '-out', at('proxy.csr')],
  ]);
  await run('openssl', [
    ...[
      'x509',
      '-req',
      '-days',
      '1',
      '-in',
      at('proxy.csr'),
      '-out',
      at('proxy.crt'),
      '-extfile',
      at('names'),
    ],
    ...['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial'],
  ]);
  await writeFile(
    at('proxy.pem'),
    (await readFile(at('proxy.crt'), 'utf8')) + (await readFile(at('proxy.key'), 'utf8')),
  );
}

interface Ports {
  readonly haproxyPort: number;
  readonly nginxPort: number;
  readonly ports: readonly [number, number];
}

/** Writes the configuration of both proxies. */
export async function writeProxies(
  folder: string,
  { haproxyPort, nginxPort, ports: [a, b] }: Ports,
): Promise<void> {
  const pem = join(folder, 'proxy.pem');
  await writeFile(
    join(folder, 'haproxy.cfg'),
    `global
  maxconn 8000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  option forwardfor
  option redispatch
  retries 3
frontend public
  bind 127.0.0.1:${haproxyPort} ssl crt ${pem}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
  default-server check inter 500 fall 2 rise 1
  server a 127.0.0.1:${a}
  server b 127.0.0.1:${b}
`,
  );
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `  ${kind}_temp_path ${folder};`)
    .join('\n');
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.log;
events { worker_connections 8000; }
http {
  access_log off;
${temporary}
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream gateways {
    server 127.0.0.1:${a} max_fails=1 fail_timeout=1s;
    server 127.0.0.1:${b} max_fails=1 fail_timeout=1s;
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${nginxPort} ssl;
    ssl_certificate ${folder}/proxy.crt;
    ssl_certificate_key ${folder}/proxy.key;
    location / {
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_next_upstream error timeout http_503;
      proxy_read_timeout 60s;
    }
  }
}
`,
  );
}

/** Starts a program of the system, which has to stay until it is ended. */
export function startProxy(program: string, args: readonly string[], lifetimeSeconds: number): ChildProcess {
  const child = spawn(program, args, { stdio: 'ignore' });
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
