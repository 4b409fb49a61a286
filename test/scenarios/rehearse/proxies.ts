import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Certificates } from '../../helpers/private-ca.ts';
import { endWithThisProcess } from '../../helpers/redis.ts';

const PEM = 'proxy.pem';

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

/** Writes the configuration of both proxies. */
export async function writeProxies(
  folder: string,
  { haproxyPort, nginxPort, ports: [a, b], certificates }: Ports,
): Promise<void> {
  await writePem(folder, certificates);
  const pem = join(folder, PEM);
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
  timeout check 2s
  option forwardfor
  option redispatch
  retries 3
frontend public
  bind 127.0.0.1:${haproxyPort} ssl crt ${pem}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
  default-server check inter 500 fall 3 rise 1
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
    server 127.0.0.1:${a} max_fails=0;
    server 127.0.0.1:${b} max_fails=0;
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${nginxPort} ssl;
    ssl_certificate ${certificates.certificate};
    ssl_certificate_key ${certificates.key};
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
