import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { ALONE_FOR_MS, primariesOf, primaryIn, Replication } from '../../src/redis/replication.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

describe('a write on a primary', () => {
  const alone = { replid: 'a', replicas: 0 };
  const followed = { replid: 'a', replicas: 1 };

  it('is enough where no replica has ever been seen', () => {
    expect(new Replication().judge(alone)).toBe('enough');
  });

  it('waits for a replica where there is one', () => {
    expect(new Replication().judge(followed)).toBe('wait');
  });

  it('is worth nothing yet where the replicas have just gone, and enough once they have been gone for long', () => {
    let now = 0;
    const replication = new Replication(() => now);
    replication.judge(followed);
    now = 5_000;
    expect(replication.judge(alone)).toBe('too-soon');
    now += ALONE_FOR_MS - 1;
    expect(replication.judge(alone)).toBe('too-soon');
    now += 1;
    expect(replication.judge(alone)).toBe('enough');
  });

  it('is judged anew for each primary, and each time that its replicas go', () => {
    let now = 0;
    const replication = new Replication(() => now);
    replication.judge(followed);
    replication.judge(alone);
    now = ALONE_FOR_MS;
    expect(replication.judge({ replid: 'promoted', replicas: 0 })).toBe('too-soon');
    expect(replication.judge(followed)).toBe('wait');
    expect(replication.judge(alone)).toBe('too-soon');
  });

  it('remembers a bounded number of primaries, and trusts none the sooner for it', () => {
    let now = 0;
    const replication = new Replication(() => now);
    replication.judge(followed);
    replication.judge(alone);
    now = ALONE_FOR_MS;
    for (let number = 0; number < 1_000; number += 1) {
      expect(replication.judge({ replid: `promoted-${number}`, replicas: 0 })).toBe('too-soon');
    }
  });
});

describe('a primary', () => {
  let primary: RedisServer;
  let client: RedisClient;
  beforeAll(async () => {
    primary = await startRedis();
    client = connectRedis(primary.url, {});
  });
  afterAll(async () => {
    client.disconnect();
    await primary.stop();
  });

  it('tells how many replicas are in step, and a name that a promoted replica does not keep', async () => {
    const [first] = await primariesOf(client);
    expect(first).toEqual({ replid: expect.stringMatching(/^\w{40}$/), replicas: 0 });
    await using replica = await startRedis(['--replicaof', '127.0.0.1', String(primary.port)]);
    await until(async () => (await primariesOf(client))[0]?.replicas === 1);
    expect(await primariesOf(client)).toEqual([{ replid: expect.stringMatching(/^\w{40}$/), replicas: 1 }]);
    const [before] = await primariesOf(client);
    await replica.admin.replicaof('NO', 'ONE');
    expect(primaryIn(await replica.admin.info('replication'))).toEqual({
      replid: expect.not.stringMatching(before?.replid ?? ''),
      replicas: 0,
    });
  });

  it('that tells nothing is one without a name or replicas', () => {
    expect(primaryIn('')).toEqual({ replid: '', replicas: 0 });
  });
});
