import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import { countingMetrics, drained, failure, ids, moneyIn, recordingLogger, take } from '../helpers/events.ts';
import { type GatewayProcess, startGatewayProcess } from '../helpers/gateway-process.ts';
import { type RunningIngress, speiCredit, startDecider, startIngress } from '../helpers/ingress.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

let root: string;
let redis: RedisServer;
let client: string;
const logs: EventLog[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-faults-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));
beforeEach(async () => {
  redis = await startRedis();
  client = randomUUID();
});
afterEach(async () => {
  await Promise.all(logs.splice(0).map((log) => log.stop()));
  await redis.stop();
});

const newFolder = (): Promise<string> => mkdtemp(join(root, 'data-'));

async function openLog(dataDir?: string): Promise<EventLog> {
  const log = await openEventLog({
    redisUrl: redis.url,
    dataDir: dataDir ?? (await newFolder()),
    retention: 100_000,
    logger: recordingLogger(),
    metrics: countingMetrics(),
  });
  logs.push(log);
  return log;
}

interface Witness {
  readonly seen: string[];
  /** Why it has had to resume, each time. */
  readonly resumed: unknown[];
}

/** A follower that writes down every event, and resumes whenever it is told to. */
function witness(log: EventLog, after: string): Witness {
  const seen: string[] = [];
  const resumed: unknown[] = [];
  let cursor = after;
  const run = async (): Promise<void> => {
    for (;;) {
      try {
        const events = await log.follow(client, { after: cursor });
        for await (const event of events) {
          seen.push(event.id);
          cursor = event.cursor;
        }
      } catch (error) {
        const { retryable, code } = error as { retryable?: boolean; code?: unknown };
        if (retryable !== true) return;
        resumed.push(code);
        // Redis is away: whoever follows comes back a moment later.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  void run();
  return { seen, resumed };
}

describe('Redis killed three times under a load of webhooks', () => {
  it('loses nothing that was answered 201, and repeats nothing, for any of 50 subscribers', async () => {
    const [receiving, serving] = [await openLog(), await openLog()];
    await using ingress = await startIngress({ clientId: client, log: receiving });
    const start = await serving.head(client);
    const witnesses = Array.from({ length: 50 }, () => witness(serving, start));

    const answered: string[] = [];
    let loading = true;
    const load = Array.from({ length: 8 }, async () => {
      while (loading) {
        const message = speiCredit();
        const { status } = await ingress.post('MONEY_IN', message);
        if (status === 201) answered.push(message.id_msg);
      }
    });
    for (let round = 0; round < 3; round += 1) {
      const before = answered.length;
      await until(() => answered.length >= before + 200);
      await redis.kill();
      await until(() => answered.length >= before + 300);
      await redis.start();
      // Live again: what is answered from now on reaches everybody.
      const fresh = answered.length;
      await until(() => witnesses.every(({ seen }) => seen.length > fresh));
    }
    loading = false;
    await Promise.all(load);
    await until(() => witnesses.every(({ seen }) => seen.length >= answered.length));
    for (const { seen } of witnesses) {
      expect(new Set(seen).size).toBe(seen.length);
      expect(new Set(seen)).toEqual(new Set(answered));
      expect(seen).toEqual(witnesses[0]?.seen);
    }
  });
});

describe('Redis that is away', () => {
  it('leaves webhooks answered 201, and all are delivered in order afterwards', async () => {
    const log = await openLog();
    await using ingress = await startIngress({ clientId: client, log });
    const events = await log.follow(client);
    await redis.kill();
    const sent: string[] = [];
    for (let count = 0; count < 300; count += 1) {
      const message = speiCredit();
      expect((await ingress.post('MONEY_IN', message)).status).toBe(201);
      sent.push(message.id_msg);
    }
    // More than a reader may leave lying is drained at once.
    const taken = take(events, 300);
    await redis.start();
    expect(ids(await taken)).toEqual(sent);
  });

  it('leaves a reader that is still in history waiting, and it goes on where it was', async () => {
    const log = await openLog();
    const start = await log.head(client);
    const sent: string[] = [];
    for (let count = 0; count < 300; count += 1) {
      const event = moneyIn();
      await log.append(client, event);
      sent.push(event.id);
    }
    const events = await log.follow(client, { after: start });
    const seen = ids(await take(events, 10));
    await redis.kill();
    const rest = take(events, 290);
    await until(async () => !(await log.health()).available);
    await redis.start();
    seen.push(...ids(await rest));
    expect(seen).toEqual(sent);
  });

  it('and a spool that cannot be opened leave 503, never 201 and never 422', async () => {
    const notFolder = join(await newFolder(), 'file');
    await writeFile(notFolder, '');
    await using decider = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    const log = await openLog(notFolder);
    await using ingress = await startIngress({ clientId: client, log });
    await using deciding = await startIngress({ clientId: client, log, decisionUrl: decider.url });
    await redis.kill();
    const statuses = new Set<number>();
    for (const through of [ingress, deciding]) {
      for (const sub_category of ['SPEI_CREDIT', 'INT_CREDIT']) {
        const response = await through.post('MONEY_IN', speiCredit({ body: { sub_category } }));
        expect(response.headers.get('retry-after')).toBe('2');
        statuses.add(response.status);
      }
    }
    expect([...statuses]).toEqual([503]);
    expect(decider.asked).toEqual([]);
  });

  it('and a disk that is full leave 503 once nothing more can be kept, and what was kept is delivered', async () => {
    const dataDir = await newFolder();
    const kept: string[] = [];
    {
      await using gateway = await startGatewayProcess({ redisUrl: redis.url, dataDir }, 512);
      await redis.kill();
      const filler = 'x'.repeat(20_000);
      for (let status = 201; status !== 503; ) {
        const message = speiCredit({ body: { payment_concept: filler } });
        ({ status } = await gateway.post(client, 'MONEY_IN', message));
        expect([201, 503]).toContain(status);
        if (status === 201) kept.push(message.id_msg);
      }
      expect(kept.length).toBeGreaterThan(0);
      await gateway.kill();
    }
    await redis.start();
    const log = await openLog(dataDir);
    await drained(log);
    expect(ids((await log.readAfter(client, null, 1000)).events)).toEqual(kept);
  });

  it('and a decider leave a credit that was answered 201 before at 503, and nobody is asked again', async () => {
    const log = await openLog();
    await using yes = await startDecider({ status: 201 });
    await using no = await startDecider({ status: 422, body: '{"refundReason":"no"}' });
    await using before = await startIngress({ clientId: client, log, decisionUrl: yes.url });
    await using after = await startIngress({ clientId: client, log, decisionUrl: no.url });
    const credit = speiCredit();
    const statuses = [(await before.post('MONEY_IN', credit)).status];
    redis.freeze();
    statuses.push((await after.post('MONEY_IN', credit)).status);
    await redis.kill();
    statuses.push((await after.post('MONEY_IN', credit)).status);
    await redis.start();
    await until(async () => (await log.health()).available);
    statuses.push((await after.post('MONEY_IN', credit)).status);
    expect(statuses).toEqual([201, 503, 503, 201]);
    expect(no.asked).toEqual([]);
  });
});

describe('Redis that hangs', () => {
  it('leaves webhooks answered while it hangs, and all are delivered once it goes on', async () => {
    const log = await openLog();
    await using ingress = await startIngress({ clientId: client, log });
    const events = await log.follow(client);
    const post = async (): Promise<string> => {
      const message = speiCredit();
      expect((await ingress.post('MONEY_IN', message)).status).toBe(201);
      return message.id_msg;
    };
    const sent = [await post()];
    redis.freeze();
    sent.push(...(await Promise.all(Array.from({ length: 20 }, post))));
    for (let count = 0; count < 20; count += 1) sent.push(await post());
    redis.thaw();
    const seen = ids(await take(events, 41));
    expect(new Set(seen)).toEqual(new Set(sent));
    await drained(log);
    expect(ids((await log.readAfter(client, null, 100)).events)).toEqual(seen);
  });
});

describe('two processes on one folder', () => {
  it('each keep what they answer 201 while Redis is away, and all of it is delivered', async () => {
    const dataDir = await newFolder();
    const options = { redisUrl: redis.url, dataDir };
    await using one = await startGatewayProcess(options);
    await using other = await startGatewayProcess(options);
    await redis.kill();
    const answered: string[] = [];
    const fill = async (gateway: GatewayProcess, count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += 1) {
        const message = speiCredit();
        expect((await gateway.post(client, 'MONEY_IN', message)).status).toBe(201);
        answered.push(message.id_msg);
      }
    };
    await Promise.all([fill(one, 150), fill(other, 150)]);
    // Looks at every spool of the folder, as each process does now and then.
    await using third = await startGatewayProcess(options);
    await Promise.all([one, other, third].map((gateway) => fill(gateway, 50)));
    const spooled = await Promise.all([one, other, third].map((gateway) => gateway.health()));
    expect(spooled).toMatchObject([{ spooled: 200 }, { spooled: 200 }, { spooled: 50 }]);
    await redis.start();
    const log = await openLog();
    const read = async () => ids((await log.readAfter(client, null, 1000)).events);
    await until(async () => (await read()).length >= answered.length);
    expect((await read()).sort()).toEqual(answered.sort());
  });
});

describe('a disk that is full', () => {
  it('under the embedded log leaves 503, and the log says that it cannot be written until there is room', async () => {
    const dataDir = await newFolder();
    await using gateway = await startGatewayProcess({ dataDir }, 2048);
    expect(await gateway.health()).toMatchObject({ writable: true, available: true });
    const filler = 'x'.repeat(20_000);
    for (let status = 201; status !== 503; ) {
      ({ status } = await gateway.post(client, 'MONEY_IN', speiCredit({ body: { concept: filler } })));
      expect([201, 503]).toContain(status);
    }
    const reasons = [expect.stringMatching(/^The event log in DATA_DIR cannot be written: .*disk/)];
    expect(await gateway.health()).toMatchObject({ writable: false, available: false, reasons });
    await gateway.kill();
    await using roomy = await startGatewayProcess({ dataDir });
    expect(await roomy.health()).toMatchObject({ writable: true, available: true });
    expect((await roomy.post(client, 'MONEY_IN', speiCredit())).status).toBe(201);
  });

  it('under the spool leaves 503 while Redis is away, and the log says so', async () => {
    await using gateway = await startGatewayProcess(
      { redisUrl: redis.url, dataDir: await newFolder() },
      2048,
    );
    await redis.kill();
    const filler = 'x'.repeat(20_000);
    for (let status = 201; status !== 503; ) {
      ({ status } = await gateway.post(client, 'MONEY_IN', speiCredit({ body: { concept: filler } })));
      expect([201, 503]).toContain(status);
    }
    const spoolProblem = expect.stringMatching(/^The spool in DATA_DIR takes no event: .*disk/);
    expect(await gateway.health()).toMatchObject({ writable: false, spoolProblem });
    await redis.start();
    await until(async () => (await gateway.health()).writable);
    expect(await gateway.health()).toMatchObject({ writable: true, spoolProblem });
  });

  it('under the spool is told of while Redis is well, where every webhook is kept', async () => {
    await using gateway = await startGatewayProcess({ redisUrl: redis.url, dataDir: await newFolder() }, 8);
    const spoolProblem = expect.stringMatching(/^The spool in DATA_DIR takes no event: /);
    await until(async () => (await gateway.health()).available);
    expect(await gateway.health()).toMatchObject({ writable: true, available: true, spoolProblem });
    expect((await gateway.post(client, 'MONEY_IN', speiCredit())).status).toBe(201);
  });
});

describe('a gateway process killed', () => {
  it('between append and answer leaves one event, and the redelivery gets its answer', async () => {
    const credit = speiCredit();
    await using dying = await startGatewayProcess({
      redisUrl: redis.url,
      dataDir: await newFolder(),
      dieAfterAppend: true,
    });
    await expect(dying.post(client, 'MONEY_IN', credit)).rejects.toThrow();
    const log = await openLog();
    await using ingress = await startIngress({ clientId: client, log });
    expect((await ingress.post('MONEY_IN', credit)).status).toBe(201);
    expect(ids((await log.readAfter(client, null, 10)).events)).toEqual([credit.id_msg]);
  });

  it('with the embedded log leaves one event too', async () => {
    const dataDir = await newFolder();
    const credit = speiCredit();
    await using dying = await startGatewayProcess({ dataDir, dieAfterAppend: true });
    await expect(dying.post(client, 'MONEY_IN', credit)).rejects.toThrow();
    await using next = await startGatewayProcess({ dataDir });
    expect((await next.post(client, 'MONEY_IN', credit)).status).toBe(201);
    await next.kill();
    const log = await openEventLog({ dataDir, retention: 10, logger: recordingLogger() });
    logs.push(log);
    expect(ids((await log.readAfter(client, null, 10)).events)).toEqual([credit.id_msg]);
  });

  it('while Redis is away leaves what it answered 201 to the next one', async () => {
    const dataDir = await newFolder();
    await using gateway = await startGatewayProcess({ redisUrl: redis.url, dataDir });
    await redis.kill();
    const sent: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const message = speiCredit();
      expect((await gateway.post(client, 'MONEY_IN', message)).status).toBe(201);
      sent.push(message.id_msg);
    }
    await gateway.kill();
    await redis.start();
    const log = await openLog(dataDir);
    await drained(log);
    expect(ids((await log.readAfter(client, null, 100)).events)).toEqual(sent);
  });
});

describe('one message delivered a hundred times at once to two processes', () => {
  it('is one event', async () => {
    const gateways: RunningIngress[] = [
      await startIngress({ clientId: client, log: await openLog() }),
      await startIngress({ clientId: client, log: await openLog() }),
    ];
    const credit = speiCredit();
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        return (await gateways[index % 2]?.post('MONEY_IN', credit))?.status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([201]));
    const { events } = (await logs[0]?.readAfter(client, null, 10)) ?? { events: [] };
    expect(ids(events)).toEqual([credit.id_msg]);
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  });
});

describe('one of 200 subscribers that stops reading', () => {
  it('is ended alone, and resumes complete', async () => {
    const log = await openLog();
    const start = await log.head(client);
    const stuck = await log.follow(client);
    const others = Array.from({ length: 199 }, () => witness(log, start));
    const sent: string[] = [];
    for (let count = 0; count < 600; count += 1) {
      const event = moneyIn();
      await log.append(client, event);
      sent.push(event.id);
    }
    await until(() => others.every(({ seen }) => seen.length >= 600));
    for (const { seen, resumed } of others) {
      expect(seen).toEqual(sent);
      expect(resumed).not.toContain('SLOW_CONSUMER');
    }
    expect(await failure(stuck)).toMatchObject({ code: 'SLOW_CONSUMER', retryable: true });
    const again = await log.follow(client, { after: start });
    expect(ids(await take(again, 600))).toEqual(sent);
  });
});
