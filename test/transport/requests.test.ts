import { EventEmitter } from 'node:events';
import { createServer, IncomingMessage, request, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UnauthenticatedError } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import { Turns } from '../../src/common/turns.ts';
import { CallerKeys } from '../../src/operation/caller-keys.ts';
import type { Incoming } from '../../src/operation/incoming.ts';
import { boundConnections, createConnections, pathOf } from '../../src/transport/connections.ts';
import { incomingOf } from '../../src/transport/incoming.ts';
import { createRequests } from '../../src/transport/requests.ts';
import { until } from '../helpers/until.ts';

setFlagsFromString('--expose-gc');
// Node gives it no type.
const collect = runInNewContext('gc') as () => void;

const ALMA: Caller = {
  clientId: 'c',
  customerId: undefined,
  subject: 'alma',
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt: undefined,
};

/** A real server whose requests a test answers itself. */
async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('whose a request is', () => {
  const start = (verifiesItself = true) => {
    const callerKeys = new CallerKeys();
    const turnsTaken: unknown[] = [];
    const turns = new Turns(() => 0);
    const asked = Promise.withResolvers<unknown>();
    const noted: Pick<Turns, 'turn'> = {
      turn(urgency, key) {
        turnsTaken.push(`${urgency} of ${String(key)}`);
        return undefined;
      },
    };
    const requests = createRequests({
      turns: Object.assign(turns, noted),
      callerKeys,
      addressOf: () => '192.0.2.1',
      verifiesItself,
      identify: () => asked.promise,
    });
    const incoming = (authorization?: string) =>
      // Nothing else of it is asked for.
      ({ authorization, addressOf: () => '192.0.2.1' }) as Incoming;
    return { callerKeys, turnsTaken, requests, incoming, asked };
  };

  it('is its address’s until its token was verified, for its bytes too', () => {
    const { callerKeys, requests } = start();
    // Nothing else of a request is asked for.
    const sent = { headers: { authorization: 'Bearer t' } } as IncomingMessage;
    expect(requests.senderOf(sent)).toEqual({ key: 'address 192.0.2.1', isKnown: false });
    callerKeys.note('t', ALMA);
    expect(requests.senderOf(sent)).toEqual({ key: 'subject alma', isKnown: true });
    expect(requests.senderOf({ headers: {} } as IncomingMessage)).toMatchObject({ isKnown: false });
  });

  it('is known at once where its token was verified, or where the service has to be asked', async () => {
    const known = start();
    known.callerKeys.note('t', ALMA);
    expect(known.requests.turn(known.incoming('Bearer t'))).toBeUndefined();
    expect(known.turnsTaken).toEqual(['operations of subject alma']);
    const asking = start(false);
    expect(asking.requests.turn(asking.incoming('Bearer t'))).toBeUndefined();
    expect(asking.requests.turn(asking.incoming())).toBeUndefined();
    expect(asking.turnsTaken).toEqual(Array(2).fill('operations of address 192.0.2.1'));
  });

  it('is found out first where the gateway verifies tokens, and its turn is its caller’s', async () => {
    const { callerKeys, turnsTaken, requests, incoming, asked } = start();
    const turn = requests.turn(incoming('Bearer t'));
    expect(turnsTaken).toEqual([]);
    callerKeys.note('t', ALMA);
    asked.resolve(ALMA);
    await turn;
    expect(turnsTaken).toEqual(['operations of subject alma']);
  });

  it.each([
    ['is refused for good', new UnauthenticatedError('nobody'), true],
    ['cannot be verified now', new Error('no keys'), false],
  ])('takes a turn of its address where its token %s', async (_, error, isRefused) => {
    const { turnsTaken, requests, incoming, asked } = start();
    const brought = incoming('Bearer t');
    const turn = requests.turn(brought);
    asked.reject(error);
    await turn;
    expect(turnsTaken).toEqual(['operations of address 192.0.2.1']);
    expect(brought.refusal).toBe(isRefused ? error : undefined);
  });
});

describe('what a request brings', () => {
  it('is its own id where that is a plain one, its credentials, and where a stream goes on', async () => {
    const seen: Incoming[] = [];
    const url = await serve((message, response) => {
      seen.push(incomingOf(message, response, undefined, undefined));
      response.end();
    });
    const headers = {
      authorization: 'Bearer t',
      'x-api-key': 'k',
      'last-event-id': 'c1',
      'x-request-id': 'request-12345',
    };
    const answers = [
      await fetch(url, { headers }),
      await fetch(url, { headers: { 'x-request-id': 'a b', 'last-event-id': '' } }),
    ];
    expect(seen[0]).toMatchObject({
      requestId: 'request-12345',
      authorization: 'Bearer t',
      apiKey: 'k',
      lastEventId: 'c1',
    });
    expect(seen[1]).toMatchObject({ authorization: undefined, apiKey: undefined, lastEventId: undefined });
    expect(seen[1]?.requestId).toMatch(/^[\w-]{36}$/);
    expect(answers.map((answer) => answer.headers.get('x-request-id'))).toEqual(
      seen.map((one) => one.requestId),
    );
  });

  it('waits for its answer until the client is gone, and is not gone with an answer that is out', async () => {
    const held: { readonly incoming: Incoming; readonly response: ServerResponse }[] = [];
    const url = await serve((message, response) => {
      held.push({ incoming: incomingOf(message, response, undefined, undefined), response });
    });
    const left = new AbortController();
    const asked = [
      fetch(url).then((answer) => answer.text()),
      fetch(url, { signal: left.signal }).catch(() => 'left'),
    ];
    await until(() => held.length === 2);
    left.abort();
    await asked[1];
    await until(() => held.some(({ incoming }) => incoming.waiters?.isGone === true));
    const [other] = held.filter(({ incoming }) => incoming.waiters?.isGone === false);
    const closed = new Promise((resolve) => other?.response.once('close', resolve));
    other?.response.end('done');
    expect(await asked[0]).toBe('done');
    await closed;
    expect(other?.incoming.waiters?.isGone).toBe(false);
  });
});

describe('connections of a server that stops', () => {
  it('end with the answer that they carry, that under way and those that come', async () => {
    const held: ServerResponse[] = [];
    const closed: number[] = [];
    const connections = createConnections((response) => closed.push(response.statusCode));
    const url = await serve((_message, response) => {
      connections.watch(response);
      held.push(response);
    });
    const connection = (status: number) =>
      new Promise((resolve) => {
        request(url, { agent: undefined, headers: { connection: 'keep-alive' } }, (answer) => {
          answer.resume();
          resolve([status, answer.headers.connection]);
        }).end();
      });
    const before = connection(200);
    await until(() => held.length === 1);
    held.shift()?.writeHead(200).end();
    expect(await before).toEqual([200, 'keep-alive']);
    const underWay = connection(201);
    await until(() => held.length === 1);
    connections.end();
    held.shift()?.writeHead(201).end();
    expect(await underWay).toEqual([201, 'close']);
    const after = connection(202);
    await until(() => held.length === 1);
    held.shift()?.writeHead(202).end();
    expect(await after).toEqual([202, 'close']);
    await until(() => closed.length === 3);
    expect(closed).toEqual([200, 201, 202]);
  });

  it('keep nothing of answers that are out', () => {
    const connections = createConnections(() => undefined);
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const objects = () => queryObjects(Object, { format: 'count' });
    const before = objects();
    for (let answer = 0; answer < 10_000; answer += 1) {
      connections.watch(response);
      response.emit('close');
      response.removeAllListeners();
    }
    expect(objects() - before).toBeLessThan(1_000);
    // Until here they are in use, and what they keep with them.
    connections.end();
  });

  it('are not known any more by the addresses that they came from', () => {
    const server = new EventEmitter();
    let connections = 0;
    /** Each comes from another, whose text is a long one. */
    const addressOf = () => {
      connections += 1;
      return `${'x'.repeat(20_000)}${connections}`;
    };
    boundConnections(server as Server, 1, addressOf);
    const kept = () => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const connect = (count: number) => {
      for (let number = 0; number < count; number += 1) {
        const socket = new EventEmitter();
        server.emit('connection', socket);
        socket.emit('close');
      }
    };
    connect(100);
    const before = kept();
    connect(2_000);
    expect(kept() - before).toBeLessThan(10_000_000);
    expect(server.listenerCount('connection')).toBe(1);
  });

  it('are bounded for an address by those that are open, whichever of them closes first, again and again', () => {
    const server = new EventEmitter();
    boundConnections(server as Server, 2, () => 'address');
    const connect = () => {
      const socket = Object.assign(new EventEmitter(), { destroy: () => socket.emit('close') });
      const closed: string[] = [];
      socket.once('close', () => closed.push('closed'));
      server.emit('connection', socket);
      return { isOpen: () => closed.length === 0, close: () => socket.destroy() };
    };
    for (let round = 0; round < 4; round += 1) {
      const [first, second] = [connect(), connect()];
      expect([first, second, connect()].map(({ isOpen }) => isOpen())).toEqual([true, true, false]);
      first.close();
      const third = connect();
      expect([second, third, connect()].map(({ isOpen }) => isOpen())).toEqual([true, true, false]);
      second.close();
      third.close();
    }
  });

  it('are counted by few paths, and those of streams apart', () => {
    const of = (url: string, accept?: string, written?: string) =>
      pathOf({
        req: { url, headers: accept === undefined ? {} : { accept } },
        headersSent: written !== undefined,
        getHeader: () => written,
      });
    expect([of('/graphql?query=x'), of('/webhooks/a/CEP/s'), of('/readyz'), of('/anything')]).toEqual([
      '/graphql',
      '/webhooks/',
      '/readyz',
      'other',
    ]);
    expect(of('/webhooks/doctor/CEP/unsigned')).toBe('other');
    const stream = 'text/event-stream';
    expect([of('/graphql', stream), of('/readyz', stream), of('/graphql', '*/*', stream)]).toEqual([
      'stream',
      '/readyz',
      'stream',
    ]);
    // As urql asks for a query.
    const either = 'application/graphql-response+json, application/json, text/event-stream, multipart/mixed';
    expect([of('/graphql', either), of('/graphql', either, 'application/json; charset=utf-8')]).toEqual([
      '/graphql',
      '/graphql',
    ]);
    expect(of('/graphql', stream, 'application/json')).toBe('/graphql');
  });
});
