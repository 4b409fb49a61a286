import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, type RedisServer, startRedis } from './redis.ts';

const run = promisify(execFile);

/** Makes an authority that nobody trusts, and a certificate of its own for 127.0.0.1, in a folder. */
async function makeCertificates(dir: string) {
  const at = (name: string) => join(dir, name);
  const openssl = (...args: string[]) => run('openssl', args);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  await writeFile(at('names'), 'subjectAltName=IP:127.0.0.1');
  await openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.crt'),
    '-subj',
    '/CN=private',
  );
  await openssl('req', ...key, '-keyout', at('own.key'), '-out', at('own.csr'), '-subj', '/CN=redis');
  const signed = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('names')];
  await openssl('x509', '-req', '-in', at('own.csr'), ...signed, '-out', at('own.crt'));
  return { authority: at('ca.crt'), certificate: at('own.crt'), key: at('own.key') };
}

export interface SecureRedis extends AsyncDisposable {
  /** With `rediss:`. */
  readonly url: string;
  /** Path of the authority's certificate, in PEM. */
  readonly authority: string;
}

/** A real Redis that speaks TLS under a certificate of a private authority. */
export async function startSecureRedis(): Promise<SecureRedis> {
  const port = await freePort();
  let authority = '';
  const redis: RedisServer = await startRedis(undefined, async (dir) => {
    const made = await makeCertificates(dir);
    authority = made.authority;
    const files = ['--tls-cert-file', made.certificate, '--tls-key-file', made.key];
    return [
      '--tls-port',
      String(port),
      ...files,
      '--tls-ca-cert-file',
      authority,
      '--tls-auth-clients',
      'no',
    ];
  });
  return {
    url: `rediss://127.0.0.1:${port}`,
    authority,
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}
