import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { holdTime } from '../helpers/held-time.ts';
import { until } from '../helpers/until.ts';
import { documentOf, inject, payable } from '../scenarios/faults/payments.ts';
import { readPage } from './pages.ts';

/** The messages of a block of the page: whose each is, and what it says. A text that the page shortens says anything. */
function messages(block: string) {
  return [...block.matchAll(/^([→←]) (\{.*\})/gm)].map(([, who, json = '']) => ({
    isOwn: who === '→',
    message: JSON.parse(json, (_, value) => (value === '…' ? expect.any(String) : value)),
  }));
}

/** A socket that the gateway has accepted, and what it has said since. */
async function connect({ graphql, sandbox }: RunningGateway) {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const heard: { readonly type: string; readonly id?: string }[] = [];
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type !== 'ping') heard.push(message);
  });
  const say = (message: object) => socket.send(JSON.stringify(message));
  await until(() => socket.readyState === WebSocket.OPEN);
  say({ type: 'connection_init', payload: { authorization: `Bearer ${sandbox.accessToken}` } });
  await until(() => heard.shift()?.type === 'connection_ack');
  return { socket, heard, say };
}

it('what PROTOCOL.md writes beside a stream is what a socket takes and says', async () => {
  const page = await readPage('PROTOCOL.md');
  const [, block = ''] =
    /^A query or a mutation beside it, [^\n]*\n\n```text\n(.*?)^```$/ms.exec(page) ?? expect.fail();
  const script = messages(block);
  expect(script.map(({ message }) => message.type)).toEqual([
    'subscribe',
    'next',
    'complete',
    'subscribe',
    'error',
    'complete',
  ]);
  await using gateway = await startGateway({ webhooks: false, config: PATIENT });
  const { socket, heard, say } = await connect(gateway);
  // The stream that the page has begun before.
  say({ id: '1', type: 'subscribe', payload: { query: 'subscription { moneyIn { cursor } }' } });
  for (const { isOwn, message } of script) {
    if (isOwn) say(message);
    else expect(await until(() => heard.shift())).toMatchObject(message);
  }
  // The stream has ended without a word: its id is free, and nothing else has come.
  say({ id: '1', type: 'subscribe', payload: { query: '{ eventCursor }' } });
  expect(await until(() => heard.shift())).toMatchObject({ id: '1', type: 'next' });
  socket.terminate();
});

/** What the page says of refused payments: over HTTP before the mutation and at its field, and over a WebSocket. */
async function refusalsOfPage() {
  const [, section = ''] =
    /^How the gateway refuses a payment\.(.*?)^## /ms.exec(await readPage('PROTOCOL.md')) ?? expect.fail();
  const blocks = [...section.matchAll(/^```text\n(.*?)^```$/gms)].map(([, block = '']) => block);
  const [early = '', atField = '', socket = ''] = blocks;
  const anything = (json: string) =>
    JSON.parse(json.replace('[…]', '"…"'), (_, value) => (value === '…' ? expect.anything() : value));
  const bodyOf = (block: string) => anything(block.trim().split('\n').at(-1) ?? '');
  const frames = [...socket.matchAll(/^← (\{.*\})$/gm)].map(([, json = '']) => anything(json));
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(early)?.[1]),
    early: bodyOf(early),
    atField: bodyOf(atField),
    frames,
  };
}

/** A penny validation: nothing of it is sent again. */
const penny = async (gateway: RunningGateway, tag: string) => {
  const { input } = await payable(gateway.sandbox, 'createPennyValidation', tag);
  return { query: documentOf('createPennyValidation'), variables: { input } };
};

it('a payment that finds no seat is refused as PROTOCOL.md writes, over either transport', async () => {
  const { status, early, frames } = await refusalsOfPage();
  await using gateway = await startGateway({
    webhooks: false,
    config: { ...PATIENT, operationsQueue: 0 },
  });
  await inject(gateway.sandbox, { method: 'POST', path: '/v1/' }, 'hang');
  const { socket, heard, say } = await connect(gateway);
  const over = new AbortController();
  const send = (sent: object) =>
    fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
        'content-type': 'application/json',
        accept: 'application/json',
      },
      body: JSON.stringify(sent),
      signal: over.signal,
    });
  // One more than a caller has seats.
  const sent = await Promise.all(Array.from({ length: 65 }, (_, index) => penny(gateway, `hangs ${index}`)));
  const refused = await Promise.any(sent.map(send));
  expect(refused.status).toBe(status);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject(early);
  const [next, complete] = frames;
  say({ id: next.id, type: 'subscribe', payload: await penny(gateway, 'over a socket') });
  expect(await until(() => heard.shift())).toEqual(next);
  expect(await until(() => heard.shift())).toEqual(complete);
  over.abort();
  socket.terminate();
  // The payments under way then have no answer at once.
  await gateway.sandbox.stop();
});

it('a payment whose calls are suspended, and one beside 20 others, are refused as PROTOCOL.md writes', async () => {
  const { atField, frames } = await refusalsOfPage();
  await using gateway = await startGateway({ webhooks: false, config: PATIENT });
  await inject(gateway.sandbox, { method: 'POST', path: '/v1/' }, { status: 503 });
  const { input } = await payable(gateway.sandbox, 'createMoneyOut', 'suspended');
  const { socket, heard, say } = await connect(gateway);
  // Two seconds after the last of these a call may try whether the service is back.
  holdTime();
  for (const { query, variables } of await Promise.all(
    Array.from({ length: 20 }, (_, index) => penny(gateway, `fails ${index}`)),
  ))
    await gateway.query(query, variables);
  const query = 'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }';
  const untimed = (message: object) =>
    JSON.parse(JSON.stringify(message), (name, value) => (name === 'retryAfterMs' ? 1_500 : value));
  expect(untimed(await gateway.query(query, { input }))).toMatchObject(atField);
  const [, , next, complete, error] = frames;
  say({ id: next.id, type: 'subscribe', payload: { query, variables: { input } } });
  expect(untimed((await until(() => heard.shift())) ?? {})).toMatchObject(next);
  expect(await until(() => heard.shift())).toEqual(complete);
  for (let open = 0; open < 20; open += 1)
    say({ id: `open ${open}`, type: 'subscribe', payload: { query: 'subscription { moneyIn { cursor } }' } });
  say({ id: error.id, type: 'subscribe', payload: { query, variables: { input } } });
  expect(await until(() => heard.shift())).toEqual(error);
  socket.terminate();
});
