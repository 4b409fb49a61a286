import type { Server } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';

/** Lets a server listen. @returns the server's address, such as `http://127.0.0.1:4000`. */
type Listen = (server: Server, options: ListenOptions) => Promise<string>;

const system: Listen = async (server, options) => {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(options, resolve);
  });
  // A server that listens on a port has one.
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
};

/** Read this binding for each use, and keep no copy: the simulator replaces it. */
export let listen: Listen = system;

/** Replaces `listen`, as the simulator does. @returns a function that restores the one before. */
export function useListening(other: Listen): () => void {
  listen = other;
  return () => {
    listen = system;
  };
}
