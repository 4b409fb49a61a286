import { subscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, TLSSocket } from 'node:tls';
import type { TlsFiles } from './url.ts';

const ignore = (): void => undefined;

let isSubscribed = false;

/**
 * The TLS options of connections to Redis and to Sentinels.
 *
 * A TLS connection that is ended while it is still being made can tell two errors: that the certificate is not trusted, and what the
 * server says of the end. ioredis listens for one, so that the second would end this process. Its connectors leave no other place to
 * listen at: those of a Cluster and of Sentinels make connections of their own.
 *
 * @throws {Error} where a file cannot be read.
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
