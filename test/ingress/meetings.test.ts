import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { queryObjects } from 'node:v8';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EventLog, NewEvent } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { cep, SECRET, speiCredit, startDecider, startIngress } from '../helpers/ingress.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

let dataDir: string;
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-meetings-'));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

/** The embedded log, whose appends, and questions for an earlier answer, wait until it is opened. */
class GatedLog extends SqliteLog {
  /** The clients whose appends have come so far, and whether each may be spooled. */
  readonly come: string[] = [];
  readonly spoolable: boolean[] = [];
  /** How often it was asked for an earlier answer. */
  recalls = 0;
  #gate = Promise.withResolvers<void>();

  constructor() {
    super({ dataDir, retention: 10_000, metrics: silentMetrics, now: Date.now });
    this.open();
  }

  close(): void {
    this.#gate = Promise.withResolvers();
  }

  open(): void {
    this.#gate.resolve();
  }

  override async append(clientId: string, event: NewEvent): ReturnType<EventLog['append']> {
    this.come.push(clientId);
    this.spoolable.push(event.spoolable);
    await this.#gate.promise;
    return super.append(clientId, event);
  }

  override async recall(...asked: Parameters<EventLog['recall']>): ReturnType<EventLog['recall']> {
    this.recalls += 1;
    await this.#gate.promise;
    return super.recall(...asked);
  }
}

it('a process that ends has answered what it was keeping, and has let go of what was put aside', async () => {
  const log = new GatedLog();
  await using ingress = await startIngress({ log, dataDir });
  const message = speiCredit();
  await ingress.post('MONEY_IN', message);
  log.close();
  // It repeats the message with other contents, and is put aside as that is noticed.
  const answered = ingress.post('MONEY_IN', { ...message, body: { ...message.body, amount: '9.00' } });
  await until(() => log.come.length === 2);
  let isDrained = false;
  const drained = ingress.drain().then(() => {
    isDrained = true;
  });
  expect((await ingress.post('MONEY_IN', message)).status).toBe(503);
  expect(isDrained).toBe(false);
  log.open();
  await drained;
  // The last that has a file of SQLite open removes this one.
  expect(existsSync(join(dataDir, 'quarantine.sqlite-wal'))).toBe(false);
  expect((await answered).status).toBe(201);
  expect(ingress.quarantined()).toMatchObject([{ reason: 'conflict' }]);
  await log.stop();
});

it('the decider is asked at its whole address, and left without a connection by a process that ends', async () => {
  const asked: (string | undefined)[] = [];
  const decider = createServer((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { 'keep-alive': 'timeout=600' }).end();
  }).listen(0, '127.0.0.1');
  decider.keepAliveTimeout = 600_000;
  await once(decider, 'listening');
  const connections = () =>
    new Promise<number>((resolve) => {
      decider.getConnections((_error, count) => resolve(count));
    });
  // A TCP server has a port.
  const { port } = decider.address() as AddressInfo;
  await using ingress = await startIngress({ decisionUrl: `http://127.0.0.1:${port}/decide?on=credits` });
  expect((await ingress.post('MONEY_IN', speiCredit())).status).toBe(201);
  expect(asked).toEqual(['/decide?on=credits']);
  expect(await connections()).toBe(1);
  await ingress.drain();
  await until(async () => (await connections()) === 0);
  decider.close();
});

it('a credit that came before the process began to end is decided on as any other', async () => {
  await using decider = await startDecider({ status: 200 });
  const log = new GatedLog();
  await using ingress = await startIngress({ log, decisionUrl: decider.url });
  log.close();
  const answered = ingress.post('MONEY_IN', speiCredit());
  await until(() => log.recalls === 1);
  const drained = ingress.drain();
  log.open();
  expect((await answered).status).toBe(201);
  await drained;
  expect(decider.asked).toHaveLength(1);
  await log.stop();
});

it('what a client has under way keeps out its own deliveries of any type, no other client’s, and is let go', async () => {
  const log = new GatedLog();
  await using one = await startIngress({ log, dataDir });
  const padding = 'x'.repeat(60_000);
  log.close();
  const answers: number[] = [];
  const sent: Promise<unknown>[] = [];
  const send = () => {
    sent.push(one.post('STATUS_UPDATE', { padding }).then(({ status }) => answers.push(status)));
  };
  // 32 MiB are some 550 of these.
  while (!answers.includes(503)) {
    const before = log.come.length + answers.length;
    for (let count = 0; count < 50; count += 1) send();
    await until(() => log.come.length + answers.length === before + 50);
  }
  const refused = await one.post('MONEY_IN', speiCredit({ body: { padding } }));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
  for (const type of ['STATUS_UPDATE', 'MONEY_IN']) {
    const fields = { status: 503, reason: 'full', clientId: one.clientId, type, refused: expect.any(Number) };
    expect(one.logger.lines).toContainEqual({ level: 'warn', fields, message: 'a webhook was refused' });
  }
  const elsewhere = one.postAs('another-client', 'STATUS_UPDATE', { padding });
  await until(() => log.come.includes('another-client'));
  log.open();
  expect((await elsewhere).status).toBe(201);
  await Promise.all(sent);
  expect((await one.post('MONEY_IN', speiCredit({ body: { padding } }))).status).toBe(201);
  await log.stop();
});

it('whoever wants to hear of what was kept has heard of it by the answer, and of nothing else', async () => {
  const kept: [string, string | undefined][] = [];
  await using ingress = await startIngress({
    onStored: (clientId, { messageId }) => void kept.push([clientId, messageId]),
  });
  const message = speiCredit();
  for (const body of [message, { no: 'message' }]) await ingress.post('MONEY_IN', body);
  expect(kept).toEqual([[ingress.clientId, message.id_msg]]);
});

it('deliveries that fail unexpectedly are answered 503, and take no room from those that follow', async () => {
  let fails = true;
  await using ingress = await startIngress({
    onStored: () => {
      if (fails) throw new Error('whoever wanted to hear of it');
    },
  });
  const padding = 'x'.repeat(60_000);
  // More than fit in at once.
  for (let round = 0; round < 12; round += 1) {
    const sent = Array.from({ length: 50 }, () => ingress.post('STATUS_UPDATE', { padding }));
    for (const { status, headers } of await Promise.all(sent))
      expect([status, headers.get('retry-after'), headers.get('connection')]).toEqual([
        503,
        '2',
        'keep-alive',
      ]);
  }
  fails = false;
  expect((await ingress.post('STATUS_UPDATE', { padding })).status).toBe(201);
});

it('a delivery that was answered leaves nothing to wait for', async () => {
  await using ingress = await startIngress();
  const deliver = async (rounds: number) => {
    for (let round = 0; round < rounds; round += 1)
      await Promise.all(Array.from({ length: 25 }, () => ingress.post('STATUS_UPDATE', { round })));
    return queryObjects(Promise, { format: 'count' });
  };
  const before = await deliver(2);
  expect(await deliver(12)).toBeLessThan(before + 150);
});

it('a verdict is never spooled, as another process may have got, and given, another', async () => {
  const log = new GatedLog();
  await using decider = await startDecider({ status: 200 });
  await using ingress = await startIngress({ log, dataDir, decisionUrl: decider.url });
  await ingress.post('MONEY_IN', speiCredit());
  await ingress.post('MONEY_IN', speiCredit({ body: { sub_category: 'INT_CREDIT' } }));
  expect(log.spoolable).toEqual([false, true]);
  await log.stop();
});

it('a credit that comes again in another envelope is the same', async () => {
  await using ingress = await startIngress();
  const message = speiCredit();
  for (const body of [message, { ...message, msg_date: '2026-03-03' }])
    expect((await ingress.post('MONEY_IN', body)).status).toBe(201);
  expect(ingress.metrics.counts).toMatchObject({ appended: 1, duplicate: 1 });
  expect(ingress.metrics.counts['quarantined']).toBeUndefined();
});

it('nor does a receipt become another event by its envelope, or that of its message', async () => {
  await using ingress = await startIngress();
  const message = cep(ingress.clientId, 'COMPLETED');
  const payload = { ...message.payload, msg_date: '2026-03-03' };
  for (const body of [message, { ...message, attempt: 2 }, { ...message, payload }])
    expect((await ingress.post('CEP', body)).status).toBe(201);
  expect(ingress.metrics.counts).toMatchObject({ appended: 1, duplicate: 2 });
});

describe('one whose body is not wanted', () => {
  /** A connection, and what has come on it. */
  async function connection(port: number) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await once(socket, 'connect');
    return { socket, has: (part: string) => until(() => text.includes(part)) };
  }
  const begin = (path: string, length: number): string =>
    `POST ${path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: ${length}\r\n\r\n`;

  it('is cut off where it sends too slowly, and goes on where it has sent all of it', async () => {
    await using ingress = await startIngress();
    const path = new URL(ingressUrl(ingress.url, ingress.clientId, 'STATUS_UPDATE', SECRET)).pathname;
    using time = stillTime();
    const [slow, whole] = [await connection(ingress.port), await connection(ingress.port)];
    for (const { socket, has } of [slow, whole]) {
      socket.write(`${begin(`${path}x`, 4)}12`);
      await has('401');
    }
    // The answer to what comes after it says that all of it was taken.
    whole.socket.write(`34GET ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`);
    await whole.has('405');
    const gone = once(slow.socket, 'close');
    await time.pass(5_000);
    await gone;
    whole.socket.write(`${begin(path, 1)}1`);
    await whole.has('201');
    whole.socket.destroy();
  });
});
