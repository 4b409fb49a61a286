import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket as NetSocket } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws';
import { ambient, type Timer, useAmbient } from '../../packages/client/src/ambient.ts';
import {
  type ConnectionEvent,
  ConnectionLost,
  createSocket,
  type Socket,
} from '../../packages/client/src/graphql-ws.ts';
import { typed } from '../../packages/client/src/index.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';
import { type Network, startNetwork } from './network.ts';

let gateway: RunningGateway;
let network: Network;

beforeAll(async () => {
  gateway = await startGateway({ webhooks: false, config: PATIENT });
  network = await startNetwork();
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await gateway.stop();
});

const connect = () => network.route(Number(new URL(gateway.url).port));
beforeEach(connect);

const answers = (socket: Socket) =>
  socket.query('{ __typename }', {}).then(({ data }) => expect(data).toEqual({ __typename: 'Query' }));

/** Longer than a test may last. */
const LATE_MS = 3_600_000;

/** While `isShort` is set, timers that the client sets for so long end soon; else they end as they were set. */
function shortened(ms: number) {
  const time = { isShort: false };
  const before = ambient;
  const setTimeout = (callback: () => void, given?: number) =>
    before.setTimeout(callback, time.isShort && given === ms ? 100 : given);
  onTestFinished(useAmbient({ ...before, setTimeout }));
  return time;
}

it('says why no socket was made for an address, and asks for the address again', async () => {
  const addresses = [
    () => 'nowhere:',
    () => {
      throw new Error('The settings are not here yet.');
    },
    () => network.graphql,
  ];
  const heard: ConnectionEvent[] = [];
  const socket = createSocket({
    url: () => addresses.shift()?.() ?? '',
    token: () => gateway.sandbox.accessToken,
    onConnection: (event) => heard.push(event),
  });
  await expect(answers(socket)).rejects.toMatchObject({ name: 'SyntaxError' });
  await expect(answers(socket)).rejects.toThrow('The settings are not here yet.');
  await answers(socket);
  expect(heard).toMatchObject([{ state: 'lost' }, { state: 'lost' }, { state: 'open' }]);
  socket.close();
});

/** A WebSocket that waits for the answer to its close. */
class Waiting extends WebSocket {
  constructor(address: string, protocols?: string | string[]) {
    // The types of ws do not have it.
    super(address, protocols, { closeTimeout: LATE_MS } as ClientOptions);
  }
}

it('asks over another connection where the idle one was closed on a network that is gone', async () => {
  const socket = createSocket({
    url: network.graphql,
    token: () => gateway.sandbox.accessToken,
    webSocketImpl: Waiting,
    // Nor does the client give the closing one up by itself.
    heartbeat: { everyMs: LATE_MS, withinMs: LATE_MS },
  });
  const opened: WebSocket[] = [];
  socket.client.on('connected', (connection) => opened.push(connection as WebSocket));
  await answers(socket);
  network.halfOpen();
  await until(() => opened[0]?.readyState === WebSocket.CLOSING);
  await answers(socket);
  expect(opened).toHaveLength(2);
  socket.close();
});

it.each([
  ['ws', WebSocket],
  ['Node', undefined],
])(
  'of %s: closing it ends a connection that is being made, and none is made once the token is there',
  async (_of, webSocketImpl) => {
    // A gateway that does not answer the upgrade.
    const asked: Promise<unknown>[] = [];
    const silent = createServer((connection) => {
      const closed = once(connection, 'close');
      connection.once('data', () => asked.push(closed));
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const given: ((token: string) => void)[] = [];
    const lost: ConnectionEvent[] = [];
    const socket = createSocket({
      url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}/graphql`,
      token: () => new Promise<string>((resolve) => given.push(resolve)),
      webSocketImpl,
      onConnection: (event) => lost.push(event),
    });
    const isRefused = () => expect(socket.query('{ __typename }', {})).rejects.toThrow('No WebSocket');

    const first = isRefused();
    await until(() => given.length === 1);
    given[0]?.('any');
    await until(() => asked.length === 1);
    socket.close();
    await Promise.all([first, ...asked]);

    const second = isRefused();
    await until(() => given.length === 2);
    lost.length = 0;
    socket.close();
    given[1]?.('any');
    await second;
    // Closing it is told, and then that no socket was made.
    await until(() => lost.length === 2);

    const third = isRefused();
    await until(() => given.length === 3);
    given[2]?.('any');
    await until(() => asked.length > 1);
    expect(asked).toHaveLength(2);
    socket.close();
    await Promise.all([third, ...asked]);
    silent.close();
  },
);

it('gives up a connection that nobody answers, also where it was checked while the token was on its way', async () => {
  // A network that swallows everything.
  const silent = createServer((connection) => connection.resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  network.route((silent.address() as AddressInfo).port);
  let give = (_: string): void => {};
  let asked = 0;
  // How long a connection may take to be made.
  const patience = shortened(2 * LATE_MS);
  const socket = createSocket({
    url: network.graphql,
    heartbeat: { everyMs: LATE_MS, withinMs: LATE_MS },
    async token() {
      asked += 1;
      if (asked > 1) return gateway.sandbox.accessToken;
      return new Promise((resolve) => {
        give = resolve;
      });
    },
  });
  const first = answers(socket);
  await until(() => asked === 1);
  socket.check?.();
  await expect(first).rejects.toMatchObject({ code: 4499 });
  patience.isShort = true;
  const second = answers(socket);
  give(gateway.sandbox.accessToken);
  await expect(second).rejects.toMatchObject({ code: 4499 });
  patience.isShort = false;
  connect();
  await answers(socket);
  socket.close();
  network.cut();
  silent.close();
});

it('gives up a connection that has died between a ping and its answer, also where an event came in between', async () => {
  let id: unknown;
  const patience = shortened(LATE_MS);
  const { url, close } = await serve((message, connection) => {
    if (message.type === 'subscribe') id = message.id;
    if (message.type !== 'ping') return;
    // The last that arrives of it. What the client waits for from then on is over soon.
    patience.isShort = true;
    connection.send(JSON.stringify({ type: 'next', id, payload: { data: {} } }));
  });
  const heartbeat = { everyMs: 50, withinMs: LATE_MS };
  const socket = createSocket({ url, token: () => 'any', heartbeat });
  let events = 0;
  const cause = await new Promise((resolve) => {
    socket.subscribe(
      typed('subscription { cepStatus { kind } }'),
      {},
      {
        opened() {},
        next() {
          events += 1;
        },
        bookmark() {},
        ended: resolve,
      },
    );
  });
  expect(events).toBe(1);
  expect(cause).toMatchObject({ code: 4499 });
  socket.close();
  close();
});

it('connects to nobody without a token, and with the next one', async () => {
  const connections: WebSocket[] = [];
  const { url, close } = await serve(
    () => {},
    (connection) => connections.push(connection),
  );
  let asked = 0;
  const told: ConnectionEvent[] = [];
  const socket = createSocket({
    url,
    token() {
      asked += 1;
      if (asked === 1) throw new Error('The identity provider is away.');
      return 'any';
    },
    onConnection: (event) => told.push(event),
  });
  const ended: unknown[] = [];
  const subscribe = () => {
    const sink = { opened() {}, next() {}, bookmark() {}, ended: (cause: unknown) => ended.push(cause) };
    return socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  };
  subscribe();
  await until(() => ended.length > 0);
  subscribe();
  await until(() => told.length === 2);
  expect(ended).toMatchObject([{ message: 'The identity provider is away.' }]);
  expect(told).toMatchObject([{ state: 'lost', cause: ended[0] }, { state: 'open' }]);
  expect(connections).toHaveLength(1);
  socket.close();
  close();
});

it('calls no subscription complete that cannot connect, also once the socket has been closed', async () => {
  // As a browser does: what waits for the error runs before the close is told.
  class Away {
    static readonly CONNECTING = 0;
    static readonly OPEN = 1;
    static readonly CLOSING = 2;
    static readonly CLOSED = 3;
    readonly readyState = Away.CLOSED;
    onerror?: (event: object) => void;
    onclose?: (event: object) => void;
    constructor() {
      setTimeout(() => this.onerror?.(new Event('error')));
      setTimeout(() => this.onclose?.({ code: 1006, reason: '' }), 10);
    }
    addEventListener() {}
    close() {}
  }
  const socket = createSocket({ url: 'ws://gateway', token: () => 'any', webSocketImpl: Away });
  expect(socket.client).toBeDefined();
  socket.close();
  const cause = await new Promise((ended) => {
    const sink = { opened() {}, next() {}, bookmark() {}, ended };
    socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  });
  expect(cause).toBeInstanceOf(ConnectionLost);
});

it('gives up a connection whose closing was begun by the gateway, and never ended', async () => {
  const { url, close } = await serve((message, connection) => {
    if (message.type !== 'subscribe') return;
    // Nothing more of the client gets through, not even its answer to this frame: close, with 4403.
    connection.pause();
    (connection as unknown as { readonly _socket: NetSocket })._socket.write(
      Buffer.from([0x88, 0x02, 0x11, 0x33]),
    );
  });
  const socket = createSocket({ url, token: () => 'any', heartbeat: { everyMs: 50, withinMs: 100 } });
  const cause = await new Promise((resolve) => {
    const sink = { opened() {}, next() {}, bookmark() {}, ended: resolve };
    socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  });
  expect(cause).toMatchObject({ code: 4499 });
  socket.close();
  close();
});

/** A gateway of this test's own. @param opened called with each connection @returns its address */
async function serve(
  answer: (message: { readonly type: string; readonly id?: string }, connection: WebSocket) => void,
  opened: (connection: WebSocket) => void = () => {},
): Promise<{ readonly url: string; close(): void }> {
  const server = new WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    handleProtocols: () => 'graphql-transport-ws',
  });
  await once(server, 'listening');
  server.on('connection', (connection) => {
    opened(connection);
    connection.on('message', (data) => {
      const message = JSON.parse(String(data)) as { type: string; id?: string };
      if (message.type === 'connection_init') connection.send('{"type":"connection_ack"}');
      answer(message, connection);
    });
  });
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  };
}

it.each(['left', 'ended by the gateway'])(
  'tells a subscription that was %s of no place that is still on its way to it, and of its end if it has not left',
  async (how) => {
    const ids: string[] = [];
    const { url, close } = await serve(({ type, id = '' }, connection) => {
      const tell = (place: string, to: readonly string[]) => {
        const bookmarks = Object.fromEntries(to.map((one) => [one, place]));
        connection.send(JSON.stringify({ type: 'ping', payload: { bookmarks } }));
      };
      // What the client sends once the first has been left, or has ended.
      if (type === 'complete' || type === 'ping') tell('later', ids);
      if (type !== 'subscribe' || ids.push(id) < 2) return;
      tell('first', ids.slice(0, 1));
      if (how !== 'left') connection.send(JSON.stringify({ type: 'complete', id: ids[0] }));
    });
    const socket = createSocket({ url, token: () => 'any' });
    const subscribe = (bookmark: (cursor: string) => void) => {
      const ended = () => {
        bookmark('its end');
        socket.check?.();
      };
      const sink = { opened() {}, next() {}, bookmark, ended };
      return socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
    };
    const told: string[] = [];
    const toldOther: string[] = [];
    const leave = subscribe((cursor) => {
      told.push(cursor);
      if (how === 'left' && cursor === 'first') leave();
    });
    subscribe((cursor) => void toldOther.push(cursor));
    await until(() => toldOther.length > 0);
    expect(told).toEqual(how === 'left' ? ['first'] : ['first', 'its end']);
    socket.close();
    close();
  },
);

/** A WebSocket as React Native has it on Android: closing one that connects does nothing, and it opens all the same. */
class Unclosable extends WebSocket {
  override close(code?: number): void {
    if (this.readyState === WebSocket.CONNECTING) return;
    super.close(code);
  }
}

it('shows no token over a socket that opens although it was closed as it was being made', async () => {
  const heard: string[] = [];
  const served: WebSocket[] = [];
  const { url, close } = await serve(
    ({ type }) => heard.push(type),
    (connection) => served.push(connection),
  );
  const made: WebSocket[] = [];
  class Left extends Unclosable {
    constructor(...given: ConstructorParameters<typeof WebSocket>) {
      super(...given);
      made.push(this);
      // As soon as graphql-ws has it, and before anything can be answered.
      queueMicrotask(() => socket.close());
    }
  }
  const socket = createSocket({ url, token: () => 'of who signs out', webSocketImpl: Left });
  await expect(socket.query('{ __typename }', {})).rejects.toThrow('No WebSocket');
  await until(() => made[0]?.readyState === WebSocket.CLOSED);
  expect(served).toHaveLength(1);
  expect(heard).toEqual([]);
  close();
});

it('makes no socket once it was closed while the end of the last one was awaited', async () => {
  const served: WebSocket[] = [];
  const { url, close } = await serve(
    ({ type }, connection) => {
      if (type === 'subscribe') closeOnly(connection, 1012);
    },
    (connection) => served.push(connection),
  );
  let asked = 0;
  const token = () => String(++asked);
  const socket = createSocket({ url, token });
  let used: globalThis.WebSocket | undefined;
  socket.client.on('connected', (connection) => {
    used = connection as globalThis.WebSocket;
  });
  const sink = { opened() {}, next() {}, bookmark() {}, ended() {} };
  socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  await until(() => used?.readyState === WebSocket.CLOSING);
  const refused = expect(socket.query('{ __typename }', {})).rejects.toThrow('No WebSocket');
  socket.close();
  served[0]?.terminate();
  await refused;
  await until(() => asked === 2);
  // What would come over another connection has come by then.
  const other = createSocket({ url, token });
  void other.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  await until(() => served.length > 1);
  expect(served).toHaveLength(2);
  other.close();
  close();
});

/** Begins to close a connection, whose answer is not read: to the client it is closing. */
function closeOnly(connection: WebSocket, code: number): void {
  connection.pause();
  const { _socket: raw } = connection as unknown as { readonly _socket: NetSocket };
  raw.write(Buffer.from([0x88, 2, code >> 8, code & 0xff]));
}

it('says with which code the gateway closes, also where a query is begun meanwhile over another connection', async () => {
  const served: WebSocket[] = [];
  const { url, close } = await serve(
    ({ type, id }, connection) => {
      if (type !== 'subscribe') return;
      if (connection !== served[0]) {
        connection.send(JSON.stringify({ type: 'next', id, payload: { data: { __typename: 'Query' } } }));
        return;
      }
      closeOnly(connection, 4400);
    },
    (connection) => served.push(connection),
  );
  const heard: ConnectionEvent[] = [];
  const socket = createSocket({ url, token: () => 'any', onConnection: (event) => heard.push(event) });
  let used: globalThis.WebSocket | undefined;
  socket.client.on('connected', (connection) => {
    used = connection as globalThis.WebSocket;
  });
  const ended = new Promise((resolve) => {
    const sink = { opened() {}, next() {}, bookmark() {}, ended: resolve };
    socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  });
  await until(() => used?.readyState === WebSocket.CLOSING);
  const answered = answers(socket);
  served[0]?.terminate();
  expect(await ended).toMatchObject({ code: 4400 });
  await answered;
  expect(heard).toMatchObject([{ state: 'open' }, { state: 'lost', code: 4400 }, { state: 'open' }]);
  socket.close();
  close();
});

it('tells the gateway that nobody waits any more for a query that is late', async () => {
  const left: unknown[] = [];
  const { url, close } = await serve(({ type, id }) => type === 'complete' && left.push(id));
  const socket = createSocket({ url, token: () => 'any', answerMs: 100 });
  // The connection is there before: a query that is late sooner has not been sent.
  await new Promise<void>((resolve) => {
    const sink = { opened: () => resolve(), next() {}, bookmark() {}, ended() {} };
    socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  });
  await expect(socket.query('{ __typename }', {})).rejects.toThrow('No answer came');
  await until(() => left.length > 0);
  socket.close();
  close();
});

it('leaves no timer of a connection that breaks while its answer to a ping is awaited', async () => {
  const { url, close } = await serve(({ type }, connection) => type === 'ping' && connection.terminate());
  const before = ambient;
  const timers = new Set<Timer>();
  const restore = useAmbient({
    ...before,
    setTimeout(callback, ms) {
      const timer = before.setTimeout(callback, ms);
      timers.add(timer);
      return timer;
    },
    clearTimeout(timer) {
      timers.delete(timer);
      before.clearTimeout(timer);
    },
  });
  const heartbeat = { everyMs: 50, withinMs: 60_000 };
  const socket = createSocket({ url, token: () => 'any', heartbeat });
  await new Promise((ended) => {
    const sink = { opened() {}, next() {}, bookmark() {}, ended };
    socket.subscribe(typed('subscription { cepStatus { kind } }'), {}, sink);
  });
  restore();
  expect(timers).toEqual(new Set());
  socket.close();
  close();
});
