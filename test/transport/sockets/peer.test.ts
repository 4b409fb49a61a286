import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Turns } from '../../../src/common/turns.ts';
import { closeForRestart } from '../../../src/transport/sockets/close.ts';
import { createOpenStreams } from '../../../src/transport/sockets/open-streams.ts';
import { Peer } from '../../../src/transport/sockets/peer.ts';
import { until } from '../../helpers/until.ts';

const MEGABYTE = 'x'.repeat(2 ** 20);

/** A message that says a text. */
const said = (text: string) => JSON.stringify({ type: 'ping', payload: { text } });

it('the messages of one caller take turns with those of others, however many sockets it has', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  // Nothing moves this clock but the work: one message is taken in a turn.
  let now = 0;
  const turns = new Turns(() => now);
  const asked: unknown[] = [];
  const gate = Promise.withResolvers<void>();
  /** Messages wait here until all have come. */
  const gated: Pick<Turns, 'turn'> = {
    turn: (urgency, key) => {
      asked.push(key);
      return gate.promise.then(() => turns.turn(urgency, key));
    },
  };
  const taken: string[] = [];
  let sockets = 0;
  const openStreams = createOpenStreams({ total: 10, perAddress: 10, perCaller: 10, perClient: 10 });
  server.on('connection', (socket, request) => {
    const seat = openStreams.enter(undefined, 'websocket');
    if (typeof seat === 'string') throw new Error('there are ten seats');
    const turnKey = request.url ?? '';
    sockets += 1;
    new Peer(
      socket,
      { authorization: undefined, address: undefined, turnKey, seat },
      { onTold: () => undefined, onFailed: () => undefined, turns: gated },
    ).onMessage(async (message) => {
      taken.push(message);
      now += 4;
    });
  });
  const connect = async (turnKey: string) => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/${turnKey}`);
    await once(client, 'open');
    client.send(said('hello'));
    return client;
  };
  const hasty = await Promise.all(Array.from({ length: 5 }, () => connect('hasty')));
  const modest = await connect('modest');
  await until(() => sockets === 6 && taken.length === 6);
  taken.length = 0;
  for (const client of hasty) for (let count = 0; count < 20; count += 1) client.send(said('hasty'));
  await until(() => asked.length === hasty.length);
  modest.send(said('modest'));
  await until(() => asked.length === hasty.length + 1);
  gate.resolve();
  await until(() => taken.length === hasty.length * 20 + 1);
  expect(taken.indexOf(said('modest'))).toBeLessThanOrEqual(1);
  for (const client of [...hasty, modest]) client.terminate();
  await new Promise((resolve) => server.close(resolve));
});

/** The two ends of one socket, the gateway's as a peer. */
async function startPeer(turns: Pick<Turns, 'turn'>) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [WebSocket];
  await once(client, 'open');
  const seat = createOpenStreams({ total: 1, perAddress: 1, perCaller: 1, perClient: 1 }).enter(
    undefined,
    'websocket',
  );
  if (typeof seat === 'string') throw new Error('nobody else has a seat');
  const arrival = { authorization: undefined, address: undefined, turnKey: 'one', seat };
  const failures: unknown[] = [];
  const onFailed = (error: unknown) => void failures.push(error);
  const peer = new Peer(socket, arrival, { onTold: () => undefined, onFailed, turns });
  const stop = async () => {
    client.terminate();
    await new Promise((resolve) => server.close(resolve));
  };
  return { client, socket, peer, failures, [Symbol.asyncDispose]: stop };
}

it('a socket whose client reads nothing is ended before much waits in it', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, socket, peer } = ends;
  client.pause();
  const largest = { waiting: 0 };
  await until(() => {
    if (!peer.isOpen) return true;
    peer.send(MEGABYTE).catch(() => undefined);
    largest.waiting = Math.max(largest.waiting, socket.bufferedAmount);
    return false;
  });
  expect(largest.waiting).toBeLessThan(6 * 2 ** 20);
  // What is sent to one that has ended goes nowhere.
  await peer.send(MEGABYTE);
});

it('what fails in a way that nobody has thought of is told, and closes the socket', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, peer, failures } = ends;
  const failure = new Error('boom');
  peer.onMessage(() => Promise.reject(failure));
  const closed = once(client, 'close');
  client.send(said('hello'));
  const [code] = await closed;
  expect([code, failures]).toEqual([4500, [failure]]);
});

it('a client that goes while it is sent something is no failure', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, socket, peer, failures } = ends;
  peer.onMessage(() => peer.send(MEGABYTE));
  client.pause();
  await until(() => {
    client.send(said('hello'));
    return socket.bufferedAmount > 0;
  });
  const closed = once(socket, 'close');
  client.terminate();
  await closed;
  expect(failures).toEqual([]);
});

it('a message that meets the close of its socket is not taken: its client asks again elsewhere', async () => {
  await using ends = await startPeer({ turn: () => undefined });
  const { client, peer } = ends;
  const taken: string[] = [];
  peer.onMessage(async (message) => void taken.push(message));
  client.send(said('hello'));
  await until(() => taken.length === 1);
  const closed = once(client, 'close');
  peer.close(1012, 'Connect again');
  client.send('{"id":"1","type":"subscribe","payload":{"query":"mutation { pay }"}}');
  const [code] = await closed;
  expect([code, taken]).toEqual([1012, [said('hello')]]);
});

it('a binary message is taken where it is UTF-8; any other would be taken for another text, and closes the socket', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, peer } = ends;
  const taken: string[] = [];
  peer.onMessage(async (message) => void taken.push(message));
  client.send(Buffer.from(said('Señal')));
  await until(() => taken.length === 1);
  const closed = once(client, 'close');
  client.send(Buffer.from(said('Señal'), 'latin1'));
  const [code] = await closed;
  expect([code, taken]).toEqual([4400, [said('Señal')]]);
});

it.each([
  { type: 'connection_ack' },
  { type: 'next', id: '1', payload: { data: {} } },
  { type: 'error', id: '1', payload: [{ message: 'No.' }] },
  { type: 'start', id: '1' },
])(
  'a message of a type that no client sends closes the socket, and is no failure of ours: $type',
  async (message) => {
    for (const before of [[], [said('hello')]]) {
      await using ends = await startPeer(new Turns(() => performance.now()));
      const { client, peer, failures } = ends;
      const taken: string[] = [];
      peer.onMessage(async (text) => void taken.push(text));
      const closed = once(client, 'close');
      for (const text of [...before, JSON.stringify(message)]) client.send(text);
      const [code] = await closed;
      expect([code, taken, failures]).toEqual([4400, before, []]);
    }
  },
);

/** Why a socket is to be closed that may have mutations under way, and with which code. */
const ENDS = [
  ['its credential has ended', 4403, (peer: Peer) => peer.expired()],
  ['too many events wait for it', 1013, (peer: Peer) => peer.fellBehind()],
  ['an operation has failed', 4500, (peer: Peer) => peer.failed(new Error('boom'))],
] as const;

it.each(ENDS)(
  'a socket that is to be closed as %s answers its mutation before (%i)',
  async (_, code, end) => {
    await using ends = await startPeer(new Turns(() => performance.now()));
    const { client, peer } = ends;
    const heard: string[] = [];
    client.on('message', (data) => heard.push(String(data)));
    const closed = once(client, 'close');
    const answer = Promise.withResolvers<void>();
    const mutation = peer.busyWith(() => answer.promise).then(() => peer.send(said('paid')));
    end(peer);
    await new Promise(setImmediate);
    expect([peer.isOpen, peer.isEnding, peer.holds(0)]).toEqual([true, true, false]);
    answer.resolve();
    await mutation;
    expect([(await closed)[0], peer.isOpen, heard]).toEqual([code, false, [said('paid')]]);
  },
);

it.each(ENDS)(
  'a socket that is to be closed as %s sends the answer that has just come (%i)',
  async (_, code, end) => {
    await using ends = await startPeer(new Turns(() => performance.now()));
    const { client, peer } = ends;
    const heard: string[] = [];
    client.on('message', (data) => heard.push(String(data)));
    const closed = once(client, 'close');
    await peer.busyWith(async () => undefined);
    end(peer);
    await Promise.resolve();
    await peer.send(said('paid'));
    expect([(await closed)[0], heard]).toEqual([code, [said('paid')]]);
  },
);

/** Has so much sent to a client that it does not read all of it: no message that follows is taken until it reads on. */
async function fill({ client, socket, peer }: Awaited<ReturnType<typeof startPeer>>) {
  client.pause();
  await until(() => {
    peer.outlet('events').send(Buffer.from(JSON.stringify(MEGABYTE)));
    return socket.bufferedAmount > 0;
  });
}

it('a socket that is to be closed says of an answer that it is complete, however slowly its client reads that', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, peer } = ends;
  const heard: string[] = [];
  client.on('message', (data) => heard.push(String(data)));
  await fill(ends);
  // As graphql-ws does.
  const sent = peer.send(said('paid')).then(() => peer.send(said('complete')));
  peer.fellBehind();
  await new Promise(setImmediate);
  const closed = once(client, 'close');
  client.resume();
  await sent;
  expect([(await closed)[0], heard.slice(-2)]).toEqual([1013, [said('paid'), said('complete')]]);
});

it('a socket is told nothing more from the moment at which its credential ends, though no timer has told it so', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, peer } = ends;
  expect(peer.holds(9_000)).toBe(true);
  peer.expiresAt = 9_000;
  expect([peer.holds(8_999), peer.isEnding]).toEqual([true, false]);
  const closed = once(client, 'close');
  expect([peer.holds(9_000), peer.isEnding, peer.holds(8_999)]).toEqual([false, true, false]);
  const [code] = await closed;
  expect(code).toBe(4403);
});

it('a socket that is to connect elsewhere is closed once what it has asked is executed', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, peer } = ends;
  const closed = once(client, 'close');
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const executing = answers.map(({ promise }) => peer.executing(() => promise));
  peer.isDrained = true;
  answers[0]?.resolve();
  await executing[0];
  await new Promise(setImmediate);
  expect(peer.isOpen).toBe(true);
  answers[1]?.resolve();
  await executing[1];
  const [code] = await closed;
  expect(code).toBe(1012);
});

it.each([
  ['its mutation is answered', 'answer'],
  ['the time for answers is over', 'over'],
] as const)('as the process ends, a socket stays open until %s', async (_, which) => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, socket, peer } = ends;
  const gone = once(client, 'close');
  const moments = { answer: Promise.withResolvers<void>(), over: Promise.withResolvers<void>() };
  void peer.executing(() => moments.answer.promise);
  const closed = closeForRestart(socket, peer, moments.over.promise);
  await new Promise(setImmediate);
  expect(peer.isOpen).toBe(true);
  moments[which].resolve();
  await closed;
  expect((await gone)[0]).toBe(1012);
});

it.each(['while its mutation is executed', 'once its mutation has been executed'])(
  'as the process ends, a socket that is to be closed %s says of the answer that it is complete, however slowly its client reads that',
  async (when) => {
    await using ends = await startPeer(new Turns(() => performance.now()));
    const { client, socket, peer } = ends;
    const heard: string[] = [];
    client.on('message', (data) => heard.push(String(data)));
    await fill(ends);
    const answer = Promise.withResolvers<void>();
    // As graphql-ws does.
    const sent = peer
      .executing(() => answer.promise)
      .then(() => peer.send(said('paid')))
      .then(() => peer.send(said('complete')));
    const isExecuted = when.startsWith('once');
    if (isExecuted) answer.resolve();
    await new Promise(setImmediate);
    const closing = closeForRestart(socket, peer, new Promise(() => undefined));
    answer.resolve();
    await new Promise(setImmediate);
    const closed = once(client, 'close');
    client.resume();
    await sent;
    expect([(await closed)[0], heard.slice(-2)]).toEqual([1012, [said('paid'), said('complete')]]);
    await closing;
  },
);

it('as the process ends, a socket whose client reads no answer is closed when the time for answers is over', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const { client, socket, peer } = ends;
  await fill(ends);
  void peer.send(said('paid'));
  const over = Promise.withResolvers<void>();
  const closing = closeForRestart(socket, peer, over.promise);
  await new Promise(setImmediate);
  expect(peer.isOpen).toBe(true);
  over.resolve();
  await until(() => !peer.isOpen);
  client.terminate();
  await closing;
});

it('messages that wait for a turn of a socket which is closed meanwhile are not taken', async () => {
  const turn = Promise.withResolvers<void>();
  await using ends = await startPeer({ turn: () => turn.promise });
  const { client, socket, peer } = ends;
  const taken: string[] = [];
  let came = 0;
  socket.on('message', () => (came += 1));
  peer.onMessage(async (message) => void taken.push(message));
  for (const text of ['hello', 'pay']) client.send(said(text));
  await until(() => came === 2);
  peer.close(4403, 'Forbidden');
  turn.resolve();
  await once(client, 'close');
  expect(taken).toEqual([said('hello')]);
});

/** A peer whose open operations are those that its client has begun; they end when the test says so. */
function withOperations({ client, peer }: Awaited<ReturnType<typeof startPeer>>) {
  const open: Record<string, null> = {};
  peer.operations = open;
  peer.onMessage(async (text) => {
    const { type, id } = JSON.parse(text);
    if (type === 'subscribe') open[id] = null;
    else delete open[id];
  });
  const heard: string[] = [];
  client.on('message', (data) => heard.push(String(data)));
  const say = (message: object) => client.send(JSON.stringify(message));
  say({ type: 'connection_init' });
  return {
    heard,
    open: () => Object.keys(open),
    begin: (id: string) => say({ type: 'subscribe', id, payload: { query: '{ banks { id } }' } }),
    leave: (id: string) => say({ type: 'complete', id }),
  };
}

it.each(['one', '1 one', '"', '\\', 'á \n', 'x'.repeat(30_000)])(
  'what is sent to an operation goes to the one that its client has under this id now: %#',
  async (id) => {
    await using ends = await startPeer(new Turns(() => performance.now()));
    const { peer } = ends;
    const client = withOperations(ends);
    const sent: string[] = [];
    for (const count of [0, 1, 2]) {
      client.begin(id);
      const [inner = ''] = await until(() => client.open().length > 0 && client.open());
      const left = peer.outlet(inner);
      sent.push(inner);
      client.leave(id);
      await until(() => client.open().length === 0);
      left.send(Buffer.from(`"left ${count}"`));
      left.mark('left');
      await peer.send(JSON.stringify({ id: inner, type: 'next', payload: 'left' }));
    }
    expect(new Set(sent).size).toBe(3);
    client.begin(id);
    const [inner = ''] = await until(() => client.open().length > 0 && client.open());
    await peer.send(JSON.stringify({ id: inner, type: 'next', payload: 1 }));
    peer.outlet(inner).send(Buffer.from('2'));
    peer.outlet(inner).mark('3');
    await until(() => client.heard.length === 3);
    expect(client.heard.map((text) => JSON.parse(text))).toEqual([
      { id, type: 'next', payload: 1 },
      { id, type: 'next', payload: 2 },
      { type: 'ping', payload: { bookmarks: { [id]: '3' } } },
    ]);
  },
);

it('a socket that begins an operation with the id of one that is open is closed, however long the id is', async () => {
  await using ends = await startPeer(new Turns(() => performance.now()));
  const client = withOperations(ends);
  const id = 'x'.repeat(1_000);
  const closed = once(ends.client, 'close');
  client.begin(id);
  client.begin(id);
  const [code, reason] = await closed;
  expect([code, String(reason)]).toEqual([4409, 'Subscriber already exists']);
  expect(client.open()).toEqual([id]);
});
