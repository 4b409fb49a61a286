import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { subscribe } from '../../src/cli/graph-stream.ts';
import type { Token } from '../../src/cli/token.ts';
import { startNetwork } from '../client/network.ts';

/**
 * A gateway that answers a subscription with which of its connections it came over, from 1.
 *
 * @param acknowledged called after each `connection_init`
 */
async function startStreams(acknowledged: (connection: WebSocket, which: number, token: string) => void) {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    handleProtocols: () => 'graphql-transport-ws',
  });
  await once(server, 'listening');
  let connections = 0;
  server.on('connection', (connection) => {
    connections += 1;
    const which = connections;
    connection.on('message', (data) => {
      const { type, id, payload } = JSON.parse(String(data));
      if (type === 'subscribe')
        connection.send(JSON.stringify({ type: 'next', id, payload: { data: which } }));
      if (type !== 'connection_init') return;
      connection.send('{"type":"connection_ack"}');
      acknowledged(connection, which, payload.authorization);
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const connection of server.clients) connection.terminate();
      server.close();
    },
  };
}

const ONLY: Token = { renews: false, get: async () => 'only' };

/** Follows until a connection after the first brings something. @returns which one it was */
async function another(url: string, token: Token = ONLY): Promise<unknown> {
  for await (const step of subscribe({ url, token }, 'subscription { x }', {}, () => undefined))
    if ('data' in step && step.data !== 1) return step.data;
  return undefined;
}

describe.concurrent('a subscription of a command', () => {
  it.for([1006, 1008, 1011, 1012, 1013, 4408, 4500])('comes back after %i', async (code, { expect }) => {
    await using gateway = await startStreams((connection, which) => {
      if (which > 1) return;
      if (code === 1006) connection.terminate();
      else connection.close(code);
    });
    expect(await another(gateway.url)).toBe(2);
  });

  it.for([1007, 1009, 4400, 4401, 4406, 4409, 4429])(
    'ends with %i, and says so',
    async (code, { expect }) => {
      await using gateway = await startStreams((connection) => connection.close(code, 'Its reason'));
      await expect(another(gateway.url)).rejects.toThrow(`The gateway closed the stream: ${code} Its reason`);
    },
  );

  it('fetches another token after 4403, and ends where there is none', async ({ expect }) => {
    await using gateway = await startStreams((connection, _, token) => {
      if (token === 'Bearer only') connection.close(4403, 'It has ended');
    });
    await expect(another(gateway.url)).rejects.toThrow('The gateway closed the stream: 4403 It has ended');
    const get = async (refused?: string) => (refused === 'only' ? 'next' : 'only');
    expect(await another(gateway.url, { renews: true, get })).toBe(3);
  });

  it('opens no socket while its source of tokens is away, and goes on after that', async ({ expect }) => {
    await using gateway = await startStreams((connection, which) => which === 1 && connection.close(1012));
    let asked = 0;
    const get = async () => {
      asked += 1;
      if (asked === 2) throw new Error('The identity provider is away.');
      return 'any';
    };
    expect(await another(gateway.url, { renews: true, get })).toBe(2);
    expect(asked).toBe(3);
  });

  it('tells once why no connection comes about, and again after one that did', async ({ expect }) => {
    let asked = 0;
    const get = async () => {
      asked += 1;
      if ([2, 3, 5].includes(asked)) throw new Error('The identity provider is away.');
      return 'any';
    };
    await using gateway = await startStreams((connection, which) => which <= 2 && connection.close(1012));
    const told: string[] = [];
    const steps = subscribe(
      { url: gateway.url, token: { renews: true, get } },
      'subscription { x }',
      {},
      () => told.push('connected again'),
      (why) => told.push(why),
    );
    for await (const step of steps) if ('data' in step && step.data === 3) break;
    expect(told).toEqual([
      'The identity provider is away.',
      'connected again',
      'The identity provider is away.',
      'connected again',
    ]);
  });

  it('tells once that its upgrade is refused', async ({ expect }) => {
    let refused = 0;
    await using cleanup = new AsyncDisposableStack();
    const sockets = await startStreams(() => undefined);
    cleanup.use(sockets);
    const server = createHttpServer().listen(0, '127.0.0.1');
    cleanup.defer(() => void server.close());
    await once(server, 'listening');
    const network = await startNetwork();
    cleanup.use(network);
    network.route((server.address() as AddressInfo).port);
    server.on('upgrade', (_, socket) => {
      refused += 1;
      // The one after these is not refused.
      if (refused === 3) network.route(sockets.port);
      socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    });
    const told: string[] = [];
    const steps = subscribe(
      { url: network.graphql, token: ONLY },
      'subscription { x }',
      {},
      () => undefined,
      (why) => told.push(why),
    );
    for await (const step of steps) if ('data' in step) break;
    expect(refused).toBe(3);
    expect(told).toEqual(['The WebSocket cannot be opened: Unexpected server response: 400.']);
  });

  it('ends a connection that brings far more than its reader takes, and goes on by another once all of it is read', async ({
    expect,
  }) => {
    const closed = Promise.withResolvers<void>();
    await using gateway = await startStreams((connection, which) => {
      if (which > 1) return;
      connection.once('close', () => closed.resolve());
      connection.on('message', (data) => {
        const { id } = JSON.parse(String(data));
        const next = JSON.stringify({ type: 'next', id, payload: { data: which } });
        for (let sent = 0; sent < 30_000; sent += 1) connection.send(next);
      });
    });
    const graph = { url: gateway.url, token: ONLY };
    let taken = 0;
    for await (const step of subscribe(graph, 'subscription { x }', {}, () => undefined)) {
      if (!('data' in step) || step.data === 2) break;
      if (taken === 0) await closed.promise;
      taken += 1;
    }
    expect(taken).toBeGreaterThan(9_000);
    expect(taken).toBeLessThan(11_000);
  });

  it('gives up a connection that has died without a word', async ({ expect }) => {
    await using network = await startNetwork();
    await using gateway = await startStreams((_, which) => which === 1 && setTimeout(network.halfOpen, 500));
    network.route(gateway.port);
    expect(await another(network.graphql)).toBe(2);
  });

  it('gives up a gateway that takes its connection and answers nothing', async ({ expect }) => {
    const silent = createServer((connection) => connection.resume()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    await using network = await startNetwork();
    network.route((silent.address() as AddressInfo).port);
    await using gateway = await startStreams((connection, which) => which === 1 && connection.close(1012));
    silent.once('connection', () => network.route(gateway.port));
    expect(await another(network.graphql)).toBe(2);
    silent.close();
  });
});
