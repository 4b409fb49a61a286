import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { readPage } from './pages.ts';

/** The messages of a block of the page: whose each is, and what it says. A text that the page shortens says anything. */
function messages(block: string) {
  return [...block.matchAll(/^([→←]) (\{.*\})/gm)].map(([, who, json = '']) => ({
    isOwn: who === '→',
    message: JSON.parse(json, (_, value) => (value === '…' ? expect.any(String) : value)),
  }));
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
  await using gateway = await startGateway({ webhooks: false });
  const socket = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const heard: { readonly type: string; readonly id?: string }[] = [];
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type !== 'ping') heard.push(message);
  });
  const say = (message: object) => socket.send(JSON.stringify(message));
  await until(() => socket.readyState === WebSocket.OPEN);
  say({ type: 'connection_init', payload: { authorization: `Bearer ${gateway.sandbox.accessToken}` } });
  await until(() => heard.shift()?.type === 'connection_ack');
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
