import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on a free port of loopback, and says on standard output where. */
export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () =>
    announceUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  );
}

/** Says on standard output where a server listens, in the form in which the gateway's own log says it. */
export function announceUrl(url: string): void {
  process.stdout.write(`${JSON.stringify({ url })}\n`);
}
