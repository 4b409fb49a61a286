import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Where connections come from: the address that they are bound to. The test process itself uses the first. */
export const TEST_ADDRESS = '127.0.0.1';

interface Link {
  readonly from: string;
  readonly to: string;
  readonly client: Socket;
  /** Absent until something may pass. */
  server: Socket | undefined;
}

/**
 * A network of servers on this machine that can be parted. Each server is reached through a port of the network, and binds
 * its own connections to its own address of the loopback, so that the network knows who speaks to whom.
 *
 * What is parted is silent, as packets that are dropped are: connections stay, and what was sent comes once they are joined.
 */
export interface Network extends AsyncDisposable {
  /** An address of the loopback for the next server. */
  address(): string;
  /** Begins to pass connections on to a server; resolves with the port to reach it at. */
  expose(address: string, port: number): Promise<number>;
  /** Nothing passes any more between an address of the one side and one of the other. What is on neither reaches both. */
  part(one: readonly string[], other: readonly string[]): void;
  /** Everything passes again, also what was sent meanwhile. */
  join(): void;
}

export function startNetwork(): Network {
  const ports = new Map<string, number>();
  const listeners: Server[] = [];
  const links = new Set<Link>();
  let sides: readonly (readonly string[])[] = [];
  let addresses = 10;

  const isParted = ({ from, to }: Link): boolean => {
    const sideOf = (address: string) => sides.findIndex((side) => side.includes(address));
    return sideOf(from) >= 0 && sideOf(to) >= 0 && sideOf(from) !== sideOf(to);
  };
  const pass = (link: Link): void => {
    const { client, to } = link;
    if (isParted(link)) {
      client.pause();
      link.server?.pause();
      return;
    }
    link.server ??= reach(link, ports.get(to));
    client.resume();
    link.server.resume();
  };
  const reach = (link: Link, port: number | undefined): Socket => {
    if (port === undefined) throw new Error(`nothing is exposed at ${link.to}`);
    const server = connect(port, '127.0.0.1');
    joinSockets(link.client, server);
    return server;
  };

  return {
    address() {
      addresses += 1;
      return `127.0.0.${addresses}`;
    },
    async expose(address, port) {
      ports.set(address, port);
      const listener = createServer((client) => {
        const link: Link = { from: client.remoteAddress ?? '', to: address, client, server: undefined };
        links.add(link);
        client.on('error', () => {}).on('close', () => links.delete(link));
        pass(link);
      }).listen(0, '127.0.0.1');
      await once(listener, 'listening');
      listeners.push(listener);
      // A TCP server has a port.
      return (listener.address() as AddressInfo).port;
    },
    part(one, other) {
      sides = [one, other];
      for (const link of links) pass(link);
    },
    join() {
      sides = [];
      for (const link of links) pass(link);
    },
    async [Symbol.asyncDispose]() {
      for (const listener of listeners) listener.close();
      for (const { client, server } of links) {
        client.destroy();
        server?.destroy();
      }
    },
  };
}

/** Both ways, until one of them ends. Not a pipe, which would resume by itself what is paused. */
function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('data', (chunk) => void to.write(chunk));
    from.on('error', () => {}).on('close', () => to.destroy());
  }
}
