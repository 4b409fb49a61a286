import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { HOSTILE_DOCUMENTS } from '../../helpers/hostile.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ webhooks: false });
});
afterAll(() => gateway.stop());

const STRANGERS = 200;
const QUERY = JSON.stringify({ query: '{ client { id } }' });
/** What takes longer to be refused than to arrive. */
const DEAR = JSON.stringify(HOSTILE_DOCUMENTS['unknown fields']);

/** A connection that the gateway has taken: it takes one at a time. */
const open = async (on: RunningGateway): Promise<Socket> => {
  const { hostname, port } = new URL(on.url);
  const socket = connect(Number(port), hostname);
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(socket, 'data');
  return socket;
};

/** Sends requests in one moment, the caller's last; tells how many had been answered when it was. */
async function placeOf(token: string, strangers: readonly string[], on: RunningGateway): Promise<number> {
  const all = [...strangers, token];
  const sockets = await Promise.all(all.map(() => open(on)));
  let answered = 0;
  const answers = sockets.map(async (socket) => {
    const [text] = await once(socket, 'data');
    answered += 1;
    return { text: String(text), place: answered };
  });
  for (const [index, socket] of sockets.entries()) {
    const body = index < strangers.length ? DEAR : QUERY;
    const head = [
      'POST /graphql HTTP/1.1',
      'Host: x',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      `Authorization: Bearer ${all[index]}`,
      'X-Forwarded-For: 192.0.2.1',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
  const last = (await Promise.all(answers)).at(-1);
  for (const socket of sockets) socket.destroy();
  expect(last?.text).toContain('"client":{"id"');
  return last?.place ?? Number.NaN;
}

const madeUp = Array.from({ length: STRANGERS }, (_, index) => `made.up.${index}`);

describe('a caller beside strangers of its address who make up credentials', () => {
  it('that is known takes its turn before them', async () => {
    const { accessToken } = gateway.sandbox;
    await gateway.query('{ client { id } }');
    expect(await placeOf(accessToken, madeUp, gateway)).toBeLessThan(STRANGERS / 2);
  });

  it('that nobody knows yet waits for their verification alone, where the gateway verifies', async () => {
    const { sandbox } = gateway;
    await using service = await startGateway({
      sandbox,
      webhooks: false,
      config: { service: serviceFor(sandbox) },
    });
    // The gateway has its own token by then.
    const headers = { authorization: `Bearer ${await callerToken({ sub: 'other' })}` };
    await service.query('{ client { id accounts(first: 1) { totalCount } } }', {}, headers);
    const place = await placeOf(await callerToken({ sub: 'new' }), madeUp, service);
    expect(place).toBeLessThan(STRANGERS / 2);
  });
});

describe('the streams of a client in service mode', () => {
  it('are bounded for each subject and customer, and for all together; the refusal says whose they are', async () => {
    const { sandbox } = gateway;
    const { customers } = await control(sandbox, 'GET', '/sandbox');
    await using service = await startGateway({
      sandbox,
      webhooks: false,
      config: {
        service: serviceFor(sandbox),
        streams: { total: 100, perAddress: 100, perCaller: 2, perClient: 5 },
      },
    });
    const sockets: WebSocket[] = [];
    const enter = async (claims: Parameters<typeof callerToken>[0]): Promise<string> => {
      const authorization = `Bearer ${await callerToken(claims)}`;
      const socket = new WebSocket(service.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
      sockets.push(socket);
      await once(socket, 'open');
      const fate = Promise.race([
        once(socket, 'message').then(() => 'in'),
        once(socket, 'close').then(([code, reason]) => `${code} ${reason}`),
      ]);
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
      return fate;
    };
    const [first] = customers;
    expect(await enter({ sub: 'a' })).toBe('in');
    expect(await enter({ sub: 'a' })).toBe('in');
    expect(await enter({ sub: 'a' })).toMatch(/^1013 Too many streams of this caller /);
    expect(await enter({ sub: 'b' })).toBe('in');
    expect(await enter({ sub: 'a', customer_id: first.id })).toBe('in');
    expect(await enter({ sub: 'c' })).toBe('in');
    expect(await enter({ sub: 'd' })).toMatch(/^1013 .* all callers of this client/);
    const over = await fetch(service.graphql, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: `Bearer ${await callerToken({ sub: 'd' })}`,
      },
      body: JSON.stringify({ query: 'subscription { moneyIn { id } }' }),
    });
    expect(over.status).toBe(503);
    expect(await over.text()).toContain('all callers of this client');
    for (const socket of sockets) socket.terminate();
  });
});
