import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEventLog } from '../../../src/events/open.ts';
import { EarlierSpools } from '../../../src/events/spool/earlier-spools.ts';
import { drained, ids, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { type Program, startProgram } from '../../helpers/program.ts';
import { startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

const EARLIER = fileURLToPath(new URL('earlier-process.ts', import.meta.url));

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-earlier-'));
});
afterAll(() => rm(root, { recursive: true, force: true, maxRetries: 5 }));

const newFolder = (): Promise<string> => mkdtemp(join(root, 'data-'));

const spooledBy = (program: Program): string[] =>
  [...program.output().matchAll(/^spooled (\S+)$/gm)].map(([, id = '']) => id);

describe.concurrent('a process of an earlier version on the same folder, while Redis is away,', () => {
  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'that ends first (%s), and another one after it, cost no event of either version',
    async (signal) => {
      await using redis = await startRedis();
      const dataDir = await newFolder();
      const client = randomUUID();
      await redis.kill();
      await using one = startProgram(EARLIER, {}, [dataDir, client, '200']);
      await one.says(/spooled/);
      const logger = recordingLogger();
      const log = await openEventLog({ redisUrl: redis.url, dataDir, retention: 10_000, logger });
      const own: string[] = [];
      const append = async (count: number): Promise<void> => {
        for (let made = 0; made < count; made += 1) {
          const event = moneyIn();
          await log.append(client, event);
          own.push(event.id);
        }
      };
      await append(100);
      await one.says(/done/);
      // Beyond the moment in which it has noticed them.
      await until(() => logger.lines.some(({ message }) => message.startsWith('an earlier version runs')));
      await append(100);
      await one.end(signal);
      await append(100);
      // It goes on with the spool of the first.
      await using other = startProgram(EARLIER, {}, [dataDir, client, '200']);
      await other.says(/done/);
      await other.end(signal);
      await append(100);
      await redis.start();
      const sent = [...own, ...spooledBy(one), ...spooledBy(other)];
      expect(sent.length).toBe(800);
      await until(
        async () => (await log.readAfter(client, null, 1000).catch(() => undefined))?.events.length === 800,
      );
      await drained(log);
      const { events } = await log.readAfter(client, null, 1000);
      expect(ids(events).sort()).toEqual(sent.sort());
      expect((await log.health()).unreadableSpools).toBeUndefined();
      await log.stop();
      expect((await readdir(dataDir)).filter((name) => /^spool-/.test(name))).toEqual([]);
    },
  );
});

describe('spools of an earlier version', () => {
  it('are taken over once a bait was left alone for half a minute, and not while it is not', async () => {
    const dataDir = await newFolder();
    let now = 0;
    let noticed = 0;
    const onBusy = (): void => {
      noticed += 1;
    };
    const spools = new EarlierSpools(dataDir, onBusy, () => now);
    const baits = async () => (await readdir(dataDir)).filter((name) => /^spool-9\d{8}\.sqlite$/.test(name));
    expect(spools.free()).toEqual([]);
    expect(await baits()).toEqual([]);
    await writeFile(join(dataDir, 'spool-0.sqlite'), 'anything');
    expect(spools.free()).toEqual([]);
    for (const time of [1, 2]) {
      const [bait = ''] = await baits();
      now += 29_999;
      expect(spools.free()).toEqual([]);
      // An earlier version may have written no further than into its own log.
      await writeFile(join(dataDir, time === 1 ? `${bait}-wal` : bait), 'somebody was here');
      now += 1;
      expect(spools.free()).toEqual([]);
      expect(noticed).toBe(time);
    }
    now += 29_999;
    expect(spools.free()).toEqual([]);
    now += 1;
    expect(spools.free()).toEqual(['spool-0.sqlite']);
    // Another process that waits likewise is not one of an earlier version.
    const others = new EarlierSpools(dataDir, onBusy, () => now);
    others.free();
    now += 30_000;
    expect(others.free()).toEqual(['spool-0.sqlite']);
    await rm(join(dataDir, 'spool-0.sqlite'));
    expect(spools.free()).toEqual([]);
    others.stop();
    expect(await baits()).toEqual([]);
    expect(noticed).toBe(2);
  });

  it('are left to a process that stands still, as long as it has them open', async () => {
    const dataDir = await newFolder();
    await using program = startProgram(EARLIER, {}, [dataDir, 'client', '1']);
    await program.says(/done/);
    program.process.kill('SIGSTOP');
    let now = 0;
    const spools = new EarlierSpools(
      dataDir,
      () => {},
      () => now,
    );
    spools.free();
    now += 30_000;
    if (process.platform === 'linux') expect(spools.free()).toEqual([]);
    await program.end('SIGKILL');
    expect(spools.free()).toEqual(['spool-0.sqlite']);
    spools.stop();
  });
});
