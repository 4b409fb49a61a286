import { execFile } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, type RedisServer, startRedis } from './redis.ts';

const run = promisify(execFile);

/** Paths of what was made, in PEM. */
export interface Certificates {
  readonly authority: string;
  /** Signed by it for 127.0.0.1, and its key. */
  readonly certificate: string;
  readonly key: string;
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** The names in a certificate, and for how many days from now it is good. */
interface Issued {
  readonly names?: string;
  readonly days?: number;
}

/** Makes an authority that nobody trusts, and a certificate of its own, in a folder. */
export async function makeCertificates(
  dir: string,
  { names = 'IP:127.0.0.1,DNS:localhost', days = 30 }: Issued = {},
): Promise<Certificates> {
  const at = (name: string) => join(dir, name);
  await writeFile(at('names'), `subjectAltName=${names}`);
  await makeAuthority(dir, 'ca', 'private');
  await renewCertificate(dir, 'ca', days);
  return { authority: at('ca.crt'), certificate: at('own.crt'), key: at('own.key') };
}

async function makeAuthority(dir: string, file: string, name: string): Promise<void> {
  const own = ['-keyout', join(dir, `${file}.key`), '-out', join(dir, `${file}.crt`), '-subj', `/CN=${name}`];
  await run('openssl', ['req', '-x509', ...KEY, ...own]);
}

/** Puts another certificate, with a key of its own, in the place of that which a folder has. */
export async function renewCertificate(
  dir: string,
  authority: 'ca' | 'next' = 'ca',
  days = 30,
): Promise<void> {
  const at = (name: string) => join(dir, name);
  const asked = ['-keyout', at('own.key'), '-out', at('own.csr'), '-subj', '/CN=redis'];
  await run('openssl', ['req', ...KEY, ...asked]);
  const by = ['-CA', at(`${authority}.crt`), '-CAkey', at(`${authority}.key`), '-CAcreateserial'];
  await run('openssl', [
    ...['x509', '-req', '-in', at('own.csr'), ...by],
    ...['-extfile', at('names'), '-days', String(days), '-out', at('own.crt')],
  ]);
}

/** Makes another authority, and puts its certificate beside the old one's: who trusts the file trusts both. */
export async function addAuthority(dir: string): Promise<void> {
  const at = (name: string) => join(dir, name);
  await makeAuthority(dir, 'next', 'another private');
  const both = await Promise.all(['ca.crt', 'next.crt'].map((file) => readFile(at(file), 'utf8')));
  await writeFile(at('ca.crt'), both.join(''));
}

/** Leaves the newer authority alone in the file. @returns its certificate, in PEM */
export async function dropOldAuthority(dir: string): Promise<string> {
  for (const end of ['crt', 'key']) await rename(join(dir, `next.${end}`), join(dir, `ca.${end}`));
  return readFile(join(dir, 'ca.crt'), 'utf8');
}

export interface SecureRedis extends AsyncDisposable, Pick<RedisServer, 'kill' | 'start'> {
  /** With `rediss:`. */
  readonly url: string;
  /** Path of the authority's certificate, in PEM. */
  readonly authority: string;
  /** Of a certificate that it signed, and of its key. */
  readonly certificate: string;
  readonly key: string;
}

/** A real Redis that speaks TLS under a certificate of a private authority; `asks` clients for theirs where told. */
export async function startSecureRedis(asks = false, issued: Issued = {}): Promise<SecureRedis> {
  const port = await freePort();
  let made = { authority: '', certificate: '', key: '' };
  const redis: RedisServer = await startRedis(undefined, async (dir) => {
    made = await makeCertificates(dir, issued);
    const files = ['--tls-cert-file', made.certificate, '--tls-key-file', made.key];
    return [
      '--tls-port',
      String(port),
      ...files,
      '--tls-ca-cert-file',
      made.authority,
      '--tls-auth-clients',
      asks ? 'yes' : 'no',
    ];
  });
  return {
    url: `rediss://127.0.0.1:${port}`,
    ...made,
    kill: redis.kill,
    start: redis.start,
    [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
  };
}
