import type { Server } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';

/** Lets a server listen. @returns its address, such as `http://127.0.0.1:4000`. */
type Listen = (server: Server, options: ListenOptions) => Promise<string>;

const system: Listen = async (server, options) => {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options, resolve);
  });
  // A server that listens on a port has one.
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
};

/** Always ask for it anew: another may take its place. */
export let listen: Listen = system;

/** Puts another in the place of the network's, as the simulator does. @returns puts it back. */
export function useListening(other: Listen): () => void {
  listen = other;
  return () => {
    listen = system;
  };
}
