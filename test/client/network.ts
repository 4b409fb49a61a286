import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

/** The way from one app to the gateways, which can fail as mobile networks do. */
export interface Network extends AsyncDisposable {
  /** Address of `/graphql` by this way. */
  readonly graphql: string;
  /** Where new connections lead; undefined: they are refused. */
  route(port: number | undefined): void;
  /** Resets every connection. */
  cut(): void;
  /** Leaves every connection open at the app's end alone: nothing that is sent arrives anywhere, and nobody is told. */
  halfOpen(): void;
  /** Stops reading what the gateway sends, until the function that it returns is called. */
  stall(): () => void;
}

interface Pair {
  readonly app: Socket;
  readonly gateway: Socket;
  dead: boolean;
}

export async function startNetwork(): Promise<Network> {
  const pairs = new Set<Pair>();
  let target: number | undefined;
  const server = createServer((app) => {
    app.on('error', () => undefined);
    if (target === undefined) {
      app.resetAndDestroy();
      return;
    }
    const gateway = connect(target, '127.0.0.1');
    const pair: Pair = { app, gateway, dead: false };
    pairs.add(pair);
    gateway.on('error', () => undefined);
    // Bytes go on as they come; a side that cannot take more holds the other back.
    app.pipe(gateway, { end: false });
    gateway.pipe(app, { end: false });
    gateway.once('close', () => pair.dead || app.destroy());
    app.once('close', () => {
      pairs.delete(pair);
      gateway.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    graphql: `http://127.0.0.1:${port}/graphql`,
    route(next) {
      target = next;
    },
    cut() {
      for (const { app } of pairs) app.resetAndDestroy();
    },
    halfOpen() {
      for (const pair of pairs) {
        pair.dead = true;
        pair.app.unpipe();
        pair.app.resume();
        pair.gateway.unpipe();
        pair.gateway.destroy();
      }
    },
    stall() {
      const stalled = [...pairs];
      for (const { app, gateway } of stalled) {
        gateway.unpipe(app);
        gateway.pause();
      }
      return () => {
        for (const { app, gateway, dead } of stalled)
          if (!dead && !app.destroyed) gateway.pipe(app, { end: false });
      };
    },
    async [Symbol.asyncDispose]() {
      for (const { app } of pairs) app.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
