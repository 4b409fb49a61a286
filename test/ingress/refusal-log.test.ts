import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import type { EventType } from '../../src/events/log.ts';
import { ingressToken, ingressUrl } from '../../src/ingress/addresses.ts';
import { type RunningIngress, SECRET, speiCredit, startIngress } from '../helpers/ingress.ts';

const LINE = 'a webhook was refused';
const MINUTE_MS = 60_000;

const told = ({ logger }: RunningIngress) =>
  logger.lines.filter(({ message }) => message === LINE).map(({ level, fields }) => ({ level, ...fields }));

const post = async (url: string, body = '1', headers: Record<string, string> = {}): Promise<number> =>
  (await fetch(url, { method: 'POST', body, headers })).status;

/** Sends the first byte of ten, and resolves once the gateway has given it up. */
async function postSlowly({ port }: RunningIngress, path: string): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{`);
  socket.resume();
  await once(socket, 'close');
}

it('each refusal of a webhook is a warning that says why, and holds no secret', async () => {
  await using ingress = await startIngress({ tokenHeader: 'X-Token' });
  const { url, clientId } = ingress;
  const address = ingressUrl(url, clientId, 'CEP', SECRET);
  const token = ingressToken(clientId, 'CEP', SECRET);
  const former = ingressUrl(url, clientId, 'CEP', 'the former secret');
  expect((await fetch(address)).status).toBe(405);
  expect(await post(`${url}/webhooks/of/nothing`)).toBe(401);
  expect(await post(former, '1', { 'x-token': token })).toBe(401);
  expect(await post(address, '1', { 'x-token': 'another token' })).toBe(401);
  expect(await post(address, 'x'.repeat(65_537), { 'x-token': token })).toBe(413);
  expect(told(ingress)).toEqual([
    { level: 'warn', status: 405, reason: 'method', refused: 1 },
    { level: 'warn', status: 401, reason: 'address', refused: 1 },
    { level: 'warn', status: 401, reason: 'signature', clientId, type: 'CEP', refused: 1 },
    { level: 'warn', status: 401, reason: 'token', clientId, type: 'CEP', refused: 1 },
    { level: 'warn', status: 413, reason: 'length', clientId, type: 'CEP', refused: 1 },
  ]);
  const lines = JSON.stringify(ingress.logger.lines);
  for (const secret of [address, former].map((text) => text.split('/').at(-1) ?? '')) {
    expect(lines).not.toContain(secret);
  }
  expect(lines).not.toContain('another token');
  expect(lines).not.toContain(token);
});

it('a webhook of a type that this version does not know names its client and type, and shares no line with strangers', async () => {
  await using ingress = await startIngress();
  const { url, clientId } = ingress;
  // Of a later version.
  const type = 'REFUND' as EventType;
  expect(await post(`${url}/webhooks/of/nothing`)).toBe(401);
  for (const client of [clientId, 'another-client', clientId])
    expect(await post(ingressUrl(url, client, type, SECRET))).toBe(401);
  expect(await post(ingressUrl(url, clientId, type, 'a guess'))).toBe(401);
  const line = { level: 'warn', status: 401 };
  expect(told(ingress)).toEqual([
    { ...line, reason: 'address', refused: 1 },
    { ...line, reason: 'type', clientId, type, refused: 1 },
    { ...line, reason: 'type', clientId: 'another-client', type, refused: 1 },
    { ...line, reason: 'signature', clientId, type, refused: 1 },
  ]);
});

it('a webhook that takes too long to arrive is a warning, too', async () => {
  await using ingress = await startIngress();
  const { url, clientId } = ingress;
  await postSlowly(ingress, new URL(ingressUrl(url, clientId, 'CEP', SECRET)).pathname);
  expect(told(ingress)).toEqual([
    { level: 'warn', status: 408, reason: 'time', clientId, type: 'CEP', refused: 1 },
  ]);
});

it('strangers get one line a minute for each reason, which counts what was refused since the last', async () => {
  const minutes: (() => void)[] = [];
  const system = clock;
  onTestFinished(
    useClock({
      ...system,
      setTimeout(callback, ms, ...args) {
        if (ms !== MINUTE_MS) return system.setTimeout(callback, ms, ...args);
        minutes.push(() => callback(...args));
        const timer = { unref: () => timer };
        return timer;
      },
    }),
  );
  await using ingress = await startIngress();
  const forge = (clientId: string) => post(ingressUrl(ingress.url, clientId, 'MONEY_IN', 'a guess'));
  for (const clientId of ['one', 'two', 'three']) expect(await forge(clientId)).toBe(401);
  expect(told(ingress)).toHaveLength(1);
  minutes.pop()?.();
  await forge('four');
  expect(told(ingress).slice(1)).toEqual([
    { level: 'warn', status: 401, reason: 'signature', clientId: 'three', type: 'MONEY_IN', refused: 2 },
  ]);
});

it('of those that have shown a signature, each client and type has lines of its own', async () => {
  await using ingress = await startIngress();
  const long = 'x'.repeat(65_537);
  for (const type of ['CEP', 'MONEY_IN', 'CEP'] as const) await ingress.post(type, long);
  await ingress.postAs('another-client', 'CEP', long);
  expect(told(ingress)).toMatchObject([
    { type: 'CEP', clientId: ingress.clientId },
    { type: 'MONEY_IN', clientId: ingress.clientId },
    { type: 'CEP', clientId: 'another-client' },
  ]);
});

it('a webhook that was taken in leaves a line at debug: its event, and whether it was a redelivery', async () => {
  await using ingress = await startIngress();
  const { clientId } = ingress;
  const message = speiCredit();
  const { id_msg: _, ...unnamed } = speiCredit();
  for (const body of [message, message, unnamed, unnamed]) await ingress.post('MONEY_IN', body);
  const { events } = await ingress.log.readAfter(clientId, null, 5);
  const lines = ingress.logger.lines.filter(({ message: text }) => text === 'a webhook was taken in');
  const common = { clientId, type: 'MONEY_IN', status: 201, spooled: false };
  expect(lines.map(({ level, fields }) => ({ level, ...fields }))).toEqual([
    { level: 'debug', ...common, eventId: message.id_msg, redelivery: false },
    { level: 'debug', ...common, eventId: message.id_msg, redelivery: true },
    { level: 'debug', ...common, eventId: events[1]?.id, redelivery: false },
    // The log does not say which event it was.
    { level: 'debug', ...common, eventId: undefined, redelivery: true },
  ]);
});
