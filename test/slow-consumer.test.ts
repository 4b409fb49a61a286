import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type RunningGateway, startGateway } from './helpers/gateway.ts';
import { subscribeOverWebSocket } from './helpers/subscriber.ts';
import { until } from './helpers/until.ts';

const EVENTS =
  'subscription ($after: Cursor) { events(after: $after) { id cursor ... on StatusUpdateEvent { payload } } }';
/** Large, so that few events fill what the kernel buffers for a reader that has stopped. */
const FILLING = 'x'.repeat(60_000);
const COUNT = 400;

/** Delivers numbered messages as the provider does, and waits until each is kept. */
async function deliver(gateway: RunningGateway, from: number, to: number): Promise<void> {
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
  for (let number = from; number < to; number += 1) {
    const response = await fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id_msg: `message-${number}`, FILLING }),
    });
    expect(response.status).toBe(201);
  }
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => `message-${number}`);

/** A client by hand, whose socket can be stopped from being read. */
async function openByHand(gateway: RunningGateway) {
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const received: { id: string; cursor: string }[] = [];
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'connection_ack') {
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: EVENTS } }));
    }
    if (message.type === 'next' && message.payload.data) received.push(message.payload.data.events);
  });
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send(
    JSON.stringify({
      type: 'connection_init',
      payload: { authorization: `Bearer ${gateway.sandbox.accessToken}` },
    }),
  );
  return { socket, received, closed };
}

it('a subscriber that stops reading is closed, hurts nobody else, and resumes complete', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const token = gateway.sandbox.accessToken;
  await using reader = subscribeOverWebSocket(gateway.graphql, token, { query: EVENTS });
  const stalled = await openByHand(gateway);
  await until(async () => {
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
    return /^pasarela_events_subscribers 2$/m.test(metrics);
  });
  await deliver(gateway, 0, 1);
  await until(() => stalled.received.length === 1);

  stalled.socket.pause();
  await deliver(gateway, 1, COUNT);
  await reader.received(COUNT);
  expect(reader.results.map(({ data }) => data.events.id)).toEqual(numbers(COUNT));
  expect(await (await fetch(`${gateway.url}/metrics`)).text()).toMatch(
    /^pasarela_events_slow_closes_total 1$/m,
  );

  stalled.socket.resume();
  expect(await stalled.closed).toBe(1013);
  const last = stalled.received.at(-1);
  expect(stalled.received.length).toBeLessThan(COUNT);
  await using resumed = subscribeOverWebSocket(gateway.graphql, token, {
    query: EVENTS,
    variables: { after: last?.cursor },
  });
  await resumed.received(COUNT - stalled.received.length);
  const seen = [
    ...stalled.received.map(({ id }) => id),
    ...resumed.results.map(({ data }) => data.events.id),
  ];
  expect(seen).toEqual(numbers(COUNT));
});
