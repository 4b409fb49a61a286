import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { makeCertificates } from './private-ca.ts';

/** A server over TLS, which this process trusts, that takes HTTP/1.1 and would rather have HTTP/2. It answers each request with 200 and `{}`. */
export async function startEitherHttp() {
  const dir = await mkdtemp(join(tmpdir(), 'pasarela-either-http-'));
  const { authority, certificate, key } = await makeCertificates(dir);
  const trusted = getCACertificates();
  setDefaultCACertificates([...trusted, await readFile(authority, 'utf8')]);
  const versions: string[] = [];
  const options = { allowHTTP1: true, cert: await readFile(certificate), key: await readFile(key) };
  const server = createSecureServer(options, (request, response) => {
    versions.push(request.httpVersion);
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `https://127.0.0.1:${port}`,
    /** Of each request, in their order. */
    versions,
    async [Symbol.asyncDispose]() {
      server.close();
      setDefaultCACertificates(trusted);
      await rm(dir, { recursive: true });
    },
  };
}
