import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import { UnreplicatedError } from '../../src/events/errors.ts';
import type { EventType } from '../../src/events/log.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { createDecider } from '../../src/ingress/decider.ts';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import { serveBesideBusy } from '../helpers/busy.ts';
import { countingMetrics, ids, recordingLogger } from '../helpers/events.ts';
import { startUpstream } from '../helpers/http-stub.ts';
import { speiCredit, startDecider, startIngress } from '../helpers/ingress.ts';
import { freePort, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

const NO_REASON = { status: 422, error: 'no refundReason' };
const TIME_OUT = { error: 'TimeoutError' };
const TOO_LONG = { error: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' };

describe('an SPEI credit on which somebody decides', () => {
  it.each([200, 201])('is accepted with %i', async (status) => {
    await using decider = await startDecider({ status });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    const credit = speiCredit();
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(201);
    expect(decider.asked).toEqual([credit]);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    expect(events).toMatchObject([{ decision: 'ACCEPTED' }]);
  });

  it('is rejected with 422 and a reason, and the rejection is an event', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"Cuenta cerrada"}' });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    const response = await ingress.post('MONEY_IN', speiCredit());
    expect([response.status, response.headers.get('content-type'), await response.json()]).toEqual([
      422,
      'application/json',
      { refundReason: 'Cuenta cerrada' },
    ]);
    const { events } = await ingress.log.readAfter(ingress.clientId, null, 5);
    expect(events).toMatchObject([{ decision: 'REJECTED', refundReason: 'Cuenta cerrada' }]);
  });

  it('is shown to the decider at the whole address, as the query may hold what lets the gateway in', async () => {
    await using decider = await startDecider({ status: 200 });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    await ingress.post('MONEY_IN', speiCredit());
    expect(decider.askedAt).toEqual(['/decide?on=credits']);
  });

  it.each([
    [
      'gives a 422 without a reason, as frameworks do',
      { status: 422, body: '{"detail":"invalid"}' },
      NO_REASON,
    ],
    ['gives a 422 with an empty reason', { status: 422, body: '{"refundReason":" "}' }, NO_REASON],
    ['gives a 422 that cannot be read', { status: 422, body: '<html>' }, NO_REASON],
    ['gives an empty 422', { status: 422 }, NO_REASON],
    ['fails', { status: 500 }, { status: 500 }],
    ['says 202', { status: 202 }, { status: 202 }],
    ['redirects', { status: 307 }, { status: 307 }],
    ['is not there', { status: 404 }, { status: 404 }],
    ['is silent', 'silence', TIME_OUT],
    ['never ends its answer', { status: 422, body: '{"refundReason":"no"}', stalls: true }, TIME_OUT],
    ['never ends the answer by which it accepts', { status: 200, body: '{', stalls: true }, TIME_OUT],
    ['accepts in more than 64 KiB', { status: 200, body: 'x'.repeat(64 * 1024 + 1) }, TOO_LONG],
  ] as const)('is neither accepted nor rejected when the decider %s', async (_, verdict, why) => {
    await using decider = await startDecider(verdict);
    let stored = 0;
    await using ingress = await startIngress({ decisionUrl: decider.url, onStored: () => (stored += 1) });
    const response = await ingress.post('MONEY_IN', speiCredit());
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
    expect(stored).toBe(0);
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toEqual([]);
    expect(ingress.quarantined().map((row) => row.reason)).toEqual(['undecided']);
    expect(decider.asked).toHaveLength(1);
    const lines = ingress.logger.lines.filter(({ message }) => message.startsWith('the decider'));
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([['warn', why]]);
  });

  it.each<[string, EventType, object]>([
    ['by another name', 'MONEY_IN', { ...speiCredit(), msg_name: 'MONEY_OUT' }],
    ['at the address of status updates', 'STATUS_UPDATE', speiCredit()],
  ])('is neither accepted nor rejected %s, and nobody is asked', async (_, type, body) => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"Cuenta cerrada"}' });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    expect((await ingress.post(type, body)).status).toBe(400);
    expect(decider.asked).toEqual([]);
    expect(ingress.quarantined().map((row) => row.reason)).toEqual(['misnamed']);
  });

  it('is asked about again when it comes again without a verdict, and gets the verdict of then', async () => {
    await using failing = await startDecider({ status: 500 });
    await using no = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using before = await startIngress({ decisionUrl: failing.url });
    const { clientId, log } = before;
    await using after = await startIngress({ clientId, log, decisionUrl: no.url });
    const credit = speiCredit();
    const statuses: number[] = [];
    for (const ingress of [before, before, after, before])
      statuses.push((await ingress.post('MONEY_IN', credit)).status);
    expect(statuses).toEqual([503, 503, 422, 422]);
    expect([failing.asked.length, no.asked.length]).toEqual([2, 1]);
  });

  it('is answered as before when it comes again, and nobody is asked', async () => {
    const credits = [speiCredit(), speiCredit()];
    await using log = await startIngress();
    const { clientId } = log;
    const statuses: number[] = [];
    for (const [index, credit] of credits.entries()) {
      await using decider = await startDecider(
        index === 0 ? { status: 422, body: '{"refundReason":"no"}' } : { status: 200 },
      );
      await using ingress = await startIngress({ clientId, log: log.log, decisionUrl: decider.url });
      statuses.push((await ingress.post('MONEY_IN', credit)).status);
    }
    // By now each decider has gone, and the next one would say the opposite.
    await using contrary = await startDecider({ status: 422, body: '{"refundReason":"changed my mind"}' });
    await using ingress = await startIngress({ clientId, log: log.log, decisionUrl: contrary.url });
    for (const credit of credits) statuses.push((await ingress.post('MONEY_IN', credit)).status);
    expect(statuses).toEqual([422, 201, 422, 201]);
    expect(contrary.asked).toEqual([]);
    expect((await log.log.readAfter(clientId, null, 5)).events).toHaveLength(2);
  });

  it('is answered as before when it comes again without a message id, and nobody is asked', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    const { id_msg: _, ...credit } = speiCredit();
    for (const _again of [1, 2]) expect((await ingress.post('MONEY_IN', credit)).status).toBe(422);
    expect(decider.asked).toHaveLength(1);
  });

  it('is answered as before when it comes again with other contents, and nobody is asked', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    const credit = speiCredit();
    for (const amount of ['250.00', '9999.00']) {
      const { status } = await ingress.post('MONEY_IN', { ...credit, body: { ...credit.body, amount } });
      expect(status).toBe(422);
    }
    expect(decider.asked).toHaveLength(1);
    expect(ingress.quarantined().map((row) => row.reason)).toEqual(['conflict']);
    expect(ingress.metrics.counts).toMatchObject({ appended: 1, duplicate: 1 });
  });

  it('leaves one line at info for each 422: which credit was refused, and not why', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using ingress = await startIngress({ decisionUrl: decider.url });
    const credit = speiCredit();
    for (const _again of [1, 2]) await ingress.post('MONEY_IN', credit);
    const { clientId, logger } = ingress;
    const common = { clientId, eventId: credit.id_msg, transactionId: credit.body['id'] };
    expect(logger.lines.filter(({ level }) => level === 'info')).toEqual(
      [false, true].map((redelivery) => ({
        level: 'info',
        fields: { ...common, redelivery },
        message: 'a credit was refused',
      })),
    );
  });

  it('is accepted where a refund has returned it, though it is refused', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    const asked: unknown[] = [];
    await using ingress = await startIngress({
      decisionUrl: decider.url,
      refundOf: async (...of: unknown[]) => {
        asked.push(of);
        return 'done';
      },
    });
    const { clientId, log, logger } = ingress;
    const credit = speiCredit();
    const transactionId = credit.body['id'];
    for (const _again of [1, 2]) expect((await ingress.post('MONEY_IN', credit)).status).toBe(201);
    expect(asked).toEqual([[clientId, transactionId]]);
    expect((await log.readAfter(clientId, null, 5)).events).toMatchObject([{ decision: 'ACCEPTED' }]);
    expect(logger.lines).toContainEqual({
      level: 'warn',
      fields: { clientId, transactionId },
      message: 'a credit that was refused has been refunded, and was accepted',
    });
  });

  it('is undecided while a refund may yet return it, and gets 422 once that was refused', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    const told = ['open', undefined, undefined] as const;
    let looks = 0;
    await using ingress = await startIngress({
      decisionUrl: decider.url,
      refundOf: async () => told[looks++],
    });
    const credit = speiCredit();
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(503);
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toEqual([]);
    expect(ingress.quarantined()).toMatchObject([{ reason: 'undecided' }]);
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(422);
    expect([decider.asked.length, looks]).toEqual([2, 3]);
  });

  it('gets 503 while a refund may return it that was recorded as it was refused, and 422 once none may', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    const told = [undefined, 'open', 'done', 'away', undefined] as const;
    let looks = 0;
    await using ingress = await startIngress({
      decisionUrl: decider.url,
      refundOf: async () => {
        const now = told[looks++];
        if (now === 'away') throw new RecordsUnavailableError('read', new Error('away'));
        return now;
      },
    });
    const credit = speiCredit();
    const statuses: number[] = [];
    for (const _again of [1, 2, 3, 4]) statuses.push((await ingress.post('MONEY_IN', credit)).status);
    expect(statuses).toEqual([503, 503, 503, 422]);
    expect([decider.asked.length, looks]).toEqual([1, 5]);
    const { clientId, logger } = ingress;
    const named = { clientId, eventId: credit.id_msg, transactionId: credit.body['id'] };
    expect(logger.lines.filter(({ level }) => level !== 'debug')).toMatchObject([
      ...[false, true].map((redelivery) => ({
        ...{ level: 'error', fields: { ...named, redelivery } },
        message: 'a credit that was refused has a refund as well',
      })),
      {
        ...{ level: 'warn', fields: { ...named, redelivery: true, reason: 'away' } },
        message: 'a credit that was refused got 503, as the record of payments cannot tell of a refund',
      },
      { level: 'info', message: 'a credit was refused' },
    ]);
  });

  it('gets 503 where replicas lack its refusal, and leaves a line that says which credit the log has', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using kept = await startIngress();
    const { clientId } = kept;
    const append = kept.log.append.bind(kept.log);
    kept.log.append = async (...event) => {
      await append(...event);
      throw new UnreplicatedError('A replica has not acknowledged it.', 'a history');
    };
    await using ingress = await startIngress({ clientId, log: kept.log, decisionUrl: decider.url });
    const credit = speiCredit();
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(503);
    expect(ingress.logger.lines).toMatchObject([
      {
        ...{ level: 'warn', message: 'a webhook got 503, and the log has it: a replica lacks it' },
        fields: { clientId, eventId: credit.id_msg, transactionId: credit.body['id'] },
      },
    ]);
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(422);
  });

  it('gets 503, and is not stored as refused, where nobody can say whether a refund returns it', async () => {
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    let isAway = true;
    await using ingress = await startIngress({
      decisionUrl: decider.url,
      refundOf: async () => {
        if (isAway) throw new RecordsUnavailableError('read', new Error('away'));
        return undefined;
      },
    });
    const credit = speiCredit();
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(503);
    expect((await ingress.log.readAfter(ingress.clientId, null, 5)).events).toEqual([]);
    isAway = false;
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(422);
  });

  it.each([
    [422, 'a credit was refused after its sender had left, and is undecided', []],
    [200, 'a webhook was kept, and its sender had left before the answer', [{ decision: 'ACCEPTED' }]],
  ] as const)(
    'and that its sender no longer waits for, as the decider says %i, leaves a line; a refusal is none',
    async (status, message, kept) => {
      // The decider has all the time that it takes until its sender's departure is noticed.
      const timer = { unref: () => timer };
      onTestFinished(useClock({ ...clock, setTimeout: () => timer, clearTimeout: () => {} }));
      const [came, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let asked = 0;
      await using decider = await startUpstream(async (_request, response) => {
        asked += 1;
        came.resolve();
        await left.promise;
        response.writeHead(status).end('{"refundReason":"no"}');
      });
      let connection: Socket | undefined;
      await using ingress = await startIngress({
        decisionUrl: decider.url,
        onConnection: (socket) => {
          connection = socket;
        },
      });
      const credit = speiCredit();
      const leaving = new AbortController();
      const answered = ingress.post('MONEY_IN', credit, {}, leaving.signal);
      await came.promise;
      leaving.abort();
      await expect(answered).rejects.toThrow();
      await until(() => connection?.destroyed === true);
      left.resolve();
      const { clientId, log, logger } = ingress;
      await until(() => logger.lines.some((line) => line.message === message));
      expect((await log.readAfter(clientId, null, 5)).events).toMatchObject(kept);
      expect(logger.lines.map((line) => line.message)).not.toContain('a credit was refused');
      // The verdict that nobody heard is the answer to the next delivery.
      expect((await ingress.post('MONEY_IN', credit)).status).toBe(status === 422 ? 422 : 201);
      expect(asked).toBe(1);
    },
  );

  it.each(['INT_CREDIT', 'OTHER', undefined])(
    'but no other sub-category (%s) is decided on',
    async (sub_category) => {
      await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
      await using ingress = await startIngress({ decisionUrl: decider.url });
      expect((await ingress.post('MONEY_IN', speiCredit({ body: { sub_category } }))).status).toBe(201);
      expect(decider.asked).toEqual([]);
    },
  );
});

describe('two processes that decide one credit differently at once', () => {
  it('give one answer, the one that is stored', async () => {
    await using redis = await startRedis();
    await using yes = await startDecider({ status: 200 });
    await using no = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    const clientId = randomUUID();
    const logs = Array.from({ length: 2 }, () => {
      const options = { redisUrl: redis.url, retention: 100, logger: recordingLogger() };
      return new RedisLog({ ...options, metrics: countingMetrics(), now: Date.now });
    });
    const [first, second] = logs;
    if (first === undefined || second === undefined) throw new Error('there are two');
    await Promise.all(logs.map((log) => log.settled()));
    await using one = await startIngress({ clientId, log: first, decisionUrl: yes.url });
    await using other = await startIngress({ clientId, log: second, decisionUrl: no.url });
    const credits = Array.from({ length: 20 }, () => speiCredit());
    for (const credit of credits) {
      const answers = await Promise.all([one.post('MONEY_IN', credit), other.post('MONEY_IN', credit)]);
      const { events } = await first.readBefore(clientId, null, 1);
      const stored = events[0]?.decision === 'REJECTED' ? 422 : 201;
      expect(answers.map((answer) => answer.status)).toEqual([stored, stored]);
    }
    const { events } = await first.readAfter(clientId, null, 100);
    expect(ids(events)).toEqual(credits.map((credit) => credit.id_msg));
    await Promise.all(logs.map((log) => log.stop()));
  });
});

it('who decides has two seconds, and after them nothing is decided', async () => {
  const times: { readonly ms: number; over(): void }[] = [];
  const restore = useClock({
    ...clock,
    setTimeout(callback, ms, ...args) {
      times.push({ ms, over: () => callback(...args) });
      const timer = { unref: () => timer };
      return timer;
    },
    clearTimeout: () => {},
  });
  onTestFinished(restore);
  const arrived = Promise.withResolvers<void>();
  await using silent = await startUpstream(() => arrived.resolve());
  const decider = createDecider(silent.url, recordingLogger());
  const verdict = decider.ask('{}');
  await arrived.promise;
  expect(times.map(({ ms }) => ms)).toEqual([2_000]);
  times[0]?.over();
  expect(await verdict).toBeUndefined();
  await decider.close();
});

it.each([
  [200, '', { decision: 'ACCEPTED' }],
  [422, '{"refundReason":"no"}', { decision: 'REJECTED', refundReason: 'no' }],
] as const)(
  'a verdict of %i counts that has come in its time, while this process was busy until that was over',
  async (status, body, verdict) => {
    await using server = await serveBesideBusy(status, body);
    const logger = recordingLogger();
    const decider = createDecider(server.url, logger);
    const asked = decider.ask('{}');
    await server.keepBusy('answered');
    expect(await asked).toEqual(verdict);
    expect(logger.lines).toEqual([]);
    await decider.close();
  },
);

it('who decides has two seconds also where no connection comes about', async () => {
  // It accepts, and never says anything of TLS.
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const decider = createDecider(`https://127.0.0.1:${port}`, recordingLogger());
  const taken: number[] = [];
  for (let asked = 0; asked < 3; asked += 1) {
    const began = performance.now();
    expect(await decider.ask('{}')).toBeUndefined();
    taken.push(performance.now() - began);
  }
  // A busy machine adds to each of them.
  expect(Math.min(...taken)).toBeLessThan(2_400);
  await decider.close();
});

it('why there is no verdict is logged at most once a minute, and nothing of the credit', async () => {
  let now = 0;
  onTestFinished(useClock({ ...clock, monotonic: () => now }));
  const logger = recordingLogger();
  const url = `http://127.0.0.1:${await freePort()}`;
  const decider = createDecider(url, logger);
  for (const at of [0, 59_999, 60_000]) {
    now = at;
    expect(await decider.ask('{"payer_name":"Luis"}')).toBeUndefined();
  }
  const line = {
    level: 'warn',
    fields: { error: 'ECONNREFUSED' },
    message: 'the decider gave no verdict on a credit',
  };
  expect(logger.lines).toEqual([line, line]);
  await decider.close();
});
