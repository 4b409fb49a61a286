import { subscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, TLSSocket } from 'node:tls';
import type { TlsFiles } from './url.ts';

const ignore = (): void => undefined;

let isSubscribed = false;

/**
 * Returns the TLS options of connections to Redis and to Sentinels.
 *
 * A TLS connection that is ended while it is being made can report two errors: that the certificate is not trusted, and what
 * the server says of the end. ioredis listens for one, so the second would end this process. Its connectors offer no other
 * place to listen, because those of a Cluster and of Sentinels make connections of their own.
 *
 * @throws {Error} if a file cannot be read.
 */
export function tlsOptions({ ca, cert, key }: TlsFiles): ConnectionOptions {
  if (!isSubscribed) {
    isSubscribed = true;
    subscribe('net.client.socket', (message) => {
      const socket: unknown = Reflect.get(Object(message), 'socket');
      if (socket instanceof TLSSocket) socket.on('error', ignore);
    });
  }
  return {
    ...(ca !== undefined && { ca: readFileSync(ca) }),
    ...(cert !== undefined && { cert: readFileSync(cert) }),
    ...(key !== undefined && { key: readFileSync(key) }),
  };
}
