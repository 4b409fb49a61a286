import { describe, expect, it } from 'vitest';
import { connectRedis } from '../../src/redis/connection.ts';
import { ALONE_FOR_MS, primaryIn, Replication } from '../../src/redis/replication.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

/** A primary whose replicas come and go, and how many of them a write on it needs. */
function watching(isWatched: boolean) {
  let now = 0;
  let syncs = 0;
  const replication = new Replication(isWatched, () => now);
  return {
    replication,
    /** Lets time pass. */
    pass: (ms: number) => {
      now += ms;
    },
    /** So many replicas begin to follow, whether or not anybody sees it. */
    come: (count: number) => {
      syncs += count;
    },
    /** How many replicas have to acknowledge a write that finds so many. */
    required: (replicas: number, replid = 'a', former = '', lately = replicas) => {
      replication.observe({ replid, replicas, lately, syncs, former });
      return replication.required(replid);
    },
    /** Those who decide about failovers say how many replicas could be promoted. */
    told: (promotable: number, noticedAfterMs = 1_000, replid = 'a') =>
      replication.told(replid, { promotable, noticedAfterMs }),
    /** They name another primary. */
    replaced: (replid = 'a') => replication.told(replid, 'replaced'),
  };
}

describe('a write on a primary of which nobody else can be asked', () => {
  it('needs no replica where none has ever been seen', () => {
    expect(watching(false).required(0)).toBe(0);
  });

  it('needs every replica that there is', () => {
    const primary = watching(false);
    expect(primary.required(1)).toBe(1);
    expect(primary.required(2)).toBe(2);
  });

  it('needs those too that have gone, until they have been gone for long', () => {
    const primary = watching(false);
    primary.required(2);
    primary.pass(5_000);
    // It may have gone only now.
    expect(primary.required(1)).toBe(2);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(1)).toBe(2);
    expect(primary.replication.isDurable).toBe(false);
    primary.pass(1);
    expect(primary.required(1)).toBe(1);
    expect(primary.replication.isDurable).toBe(true);
  });

  it('needs each of those that go one after the other until that one has been gone for long', () => {
    const primary = watching(false);
    primary.required(2);
    expect(primary.required(1)).toBe(2);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(0)).toBe(2);
    primary.pass(1);
    expect(primary.required(0)).toBe(1);
    primary.pass(ALONE_FOR_MS - 2);
    expect(primary.required(0)).toBe(1);
    primary.pass(1);
    expect(primary.required(0)).toBe(0);
  });

  it('needs one that has gone between two looks until it has been gone for long since the second', () => {
    const primary = watching(false);
    primary.required(1);
    primary.pass(10 * ALONE_FOR_MS);
    expect(primary.required(0)).toBe(1);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(0)).toBe(1);
    primary.pass(1);
    expect(primary.required(0)).toBe(0);
  });

  it('needs those that were silent before it was first looked at, from then on for as long', () => {
    const primary = watching(false);
    expect(primary.required(1, 'a', '', 2)).toBe(2);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(1)).toBe(2);
    // Also on the history that begins where the primary starts again.
    expect(primary.required(1, 'restarted')).toBe(2);
    primary.pass(1);
    expect(primary.required(1)).toBe(1);
  });

  it('needs a replica that came and went between two looks, for as long again', () => {
    const primary = watching(false);
    primary.required(1);
    expect(primary.required(0)).toBe(1);
    primary.pass(ALONE_FOR_MS);
    expect(primary.required(0)).toBe(0);
    primary.pass(60_000);
    primary.come(1);
    expect(primary.required(0)).toBe(1);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(0)).toBe(1);
    primary.pass(1);
    expect(primary.required(0)).toBe(0);
  });

  it('needs no more than there were at once where one replica comes again and again', () => {
    const primary = watching(false);
    primary.required(1);
    primary.come(7);
    expect(primary.required(1)).toBe(1);
  });

  it('needs as many as there were of each history that begins where there were replicas before', () => {
    const primary = watching(false);
    primary.required(2);
    expect(primary.required(0, 'restarted')).toBe(2);
    expect(primary.required(1, 'promoted', 'a')).toBe(2);
    primary.pass(ALONE_FOR_MS);
    expect(primary.required(1, 'promoted', 'a')).toBe(1);
  });

  it('needs as many as the server that it replaced did, though some of them had gone', () => {
    const primary = watching(false);
    primary.required(2);
    expect(primary.required(1)).toBe(2);
    expect(primary.required(0, 'promoted', 'a')).toBe(2);
  });

  it('does not count for three seconds after one that replicas did not acknowledge, unless they acknowledge another', () => {
    const { replication, required, pass } = watching(false);
    required(1);
    for (const _time of ['first', 'second']) {
      replication.acknowledged('a', false);
      expect([replication.isDurable, replication.awaited('a').isStalled]).toEqual([false, true]);
      replication.acknowledged('a', true);
      expect([replication.isDurable, replication.awaited('a').isStalled]).toEqual([true, false]);
    }
    replication.acknowledged('a', false);
    pass(1_000);
    // The latest counts, each time.
    for (const _time of ['first', 'second']) {
      replication.acknowledged('a', false);
      pass(2_999);
      expect(replication.isDurable).toBe(false);
      pass(1);
      expect(replication.isDurable).toBe(true);
    }
  });

  it('needs the one that it replaced, though this process has never seen a replica', () => {
    const primary = watching(false);
    expect(primary.required(0, 'promoted', 'a')).toBe(1);
    primary.pass(ALONE_FOR_MS - 1);
    expect(primary.required(0, 'promoted', 'a')).toBe(1);
    primary.pass(1);
    expect(primary.required(0, 'promoted', 'a')).toBe(0);
  });

  it('remembers a bounded number of histories, and trusts none the sooner for it', () => {
    const primary = watching(false);
    primary.required(1);
    primary.pass(ALONE_FOR_MS);
    for (let number = 0; number < 1_000; number += 1) {
      expect(primary.required(0, `promoted-${number}`)).toBe(1);
    }
  });
});

describe('a write on a primary that Sentinels or a Cluster watch', () => {
  it('needs a replica until they have said that there is none to be promoted', () => {
    const primary = watching(true);
    expect(primary.required(0)).toBe(1);
    primary.told(0);
    expect(primary.required(0)).toBe(0);
  });

  it('needs a replica at once where they name another primary, until they name this one again', () => {
    const primary = watching(true);
    primary.required(0);
    primary.told(0);
    expect(primary.required(0)).toBe(0);
    primary.replaced('b');
    expect(primary.required(0)).toBe(0);
    primary.replaced();
    expect(primary.required(0)).toBe(1);
    primary.told(0);
    expect(primary.required(0)).toBe(0);
  });

  it('needs every replica that they could promote, though it does not follow', () => {
    const primary = watching(true);
    primary.required(1);
    primary.told(2);
    expect(primary.required(1)).toBe(2);
  });

  it('needs of those that were silent before it was first looked at the ones that they could promote', () => {
    const primary = watching(true);
    primary.required(1, 'a', '', 3);
    primary.told(2);
    expect(primary.required(1, 'a', '', 3)).toBe(2);
    primary.told(1);
    expect(primary.required(1, 'a', '', 3)).toBe(1);
  });

  it('needs a replica that has gone until they agree, however long that takes', () => {
    const primary = watching(true);
    primary.required(1);
    primary.told(1);
    expect(primary.required(0)).toBe(1);
    primary.pass(10 * ALONE_FOR_MS);
    primary.told(1);
    expect(primary.required(0)).toBe(1);
    primary.told(0);
    expect(primary.required(0)).toBe(0);
  });

  it('needs it no longer once they say so, before the primary is looked at again', () => {
    const { replication, required, told, pass } = watching(true);
    required(1);
    required(0);
    pass(ALONE_FOR_MS);
    expect(replication.isDurable).toBe(false);
    told(0);
    expect([replication.isDurable, replication.required('a')]).toEqual([true, 0]);
  });

  it('needs the second that has gone, though they have said that the first cannot be promoted', () => {
    const primary = watching(true);
    primary.required(2);
    primary.required(1);
    primary.pass(ALONE_FOR_MS);
    primary.told(1);
    expect(primary.required(0)).toBe(1);
    primary.told(0);
    expect(primary.required(0)).toBe(1);
    primary.pass(ALONE_FOR_MS);
    primary.told(0);
    expect(primary.required(0)).toBe(0);
  });

  it('needs it for twice the time after which they act, where that is long', () => {
    const primary = watching(true);
    primary.required(1);
    primary.required(0);
    primary.pass(89_999);
    primary.told(0, 45_000);
    expect(primary.required(0)).toBe(1);
    primary.pass(1);
    expect(primary.required(0)).toBe(0);
  });

  it('does not count without it on a word that is old', () => {
    const primary = watching(true);
    primary.required(1);
    primary.told(0);
    primary.pass(10 * ALONE_FOR_MS);
    expect(primary.required(0)).toBe(1);
  });

  it('needs a replica again on one that was alone, once their word is old', () => {
    const { replication, required, told, pass } = watching(true);
    required(0);
    told(0);
    pass(15_000);
    expect([required(0), replication.isDurable]).toEqual([0, true]);
    pass(1);
    expect([required(0), replication.isDurable]).toEqual([1, false]);
    told(0);
    expect([required(0), replication.isDurable]).toEqual([0, true]);
  });

  it('needs as many as there were at most, once the word that fewer will do is old', () => {
    const primary = watching(true);
    primary.required(2);
    primary.required(1);
    primary.pass(ALONE_FOR_MS);
    primary.told(1);
    expect(primary.required(1)).toBe(1);
    primary.pass(15_001);
    expect(primary.required(1)).toBe(2);
    primary.told(1);
    expect(primary.required(1)).toBe(1);
  });

  it('needs the primary that a promoted one has replaced for as long as a replica that has gone', () => {
    const primary = watching(true);
    primary.required(1);
    primary.told(1);
    expect(primary.required(0, 'promoted', 'a')).toBe(1);
    // It is down, they say, and its data is old: it may be back in a moment all the same.
    primary.told(0, 1_000, 'promoted');
    expect(primary.required(0, 'promoted', 'a')).toBe(1);
    primary.pass(ALONE_FOR_MS - 1);
    primary.told(0, 1_000, 'promoted');
    expect(primary.required(0, 'promoted', 'a')).toBe(1);
    primary.pass(1);
    primary.told(0, 1_000, 'promoted');
    expect(primary.required(0, 'promoted', 'a')).toBe(0);
  });

  it('needs their word where it is old, and every replica that counts as yet follows', () => {
    const { replication, required, told, pass } = watching(true);
    const needsWord = (replicas: number, replid = 'a', former = '') => {
      required(replicas, replid, former);
      return replication.needsWord(replid);
    };
    expect(needsWord(0)).toBe(true);
    told(0);
    expect(needsWord(0)).toBe(false);
    pass(15_001);
    expect(needsWord(0)).toBe(true);
    expect(needsWord(1)).toBe(true);
    // What they say lets no write count at once: the replica, and the primary that was replaced, may be back in a moment.
    expect(needsWord(0)).toBe(false);
    expect(needsWord(0, 'promoted', 'a')).toBe(false);
  });

  it('needs as many as the group had, of each primary that is promoted', () => {
    const primary = watching(true);
    primary.required(2);
    primary.told(2);
    expect(primary.required(1, 'second', 'a')).toBe(2);
    primary.told(1, 1_000, 'second');
    expect(primary.required(1, 'second', 'a')).toBe(2);
    expect(primary.required(0, 'third', 'second')).toBe(2);
  });

  it('needs as many as the group had also where all had gone from the one before, of which one could be promoted', () => {
    const primary = watching(true);
    primary.required(2);
    primary.pass(ALONE_FOR_MS);
    primary.told(1);
    expect(primary.required(0)).toBe(2);
    expect(primary.required(0, 'promoted', 'a')).toBe(2);
    primary.told(1, 1_000, 'promoted');
    expect(primary.required(1, 'promoted', 'a')).toBe(2);
  });

  it('needs the replaced one again after each promotion, also where the one before was alone for long', () => {
    const primary = watching(true);
    primary.required(1);
    primary.required(0, 'second', 'a');
    primary.pass(ALONE_FOR_MS);
    primary.told(0, 1_000, 'second');
    expect(primary.required(0, 'second', 'a')).toBe(0);
    primary.told(0, 1_000, 'third');
    primary.required(0, 'third', 'second');
    primary.told(0, 1_000, 'third');
    expect(primary.required(0, 'third', 'second')).toBe(1);
  });

  it('needs none on one that only started again, where they say that it has none', () => {
    const primary = watching(true);
    primary.required(1);
    primary.required(0, 'of-another-group');
    expect(primary.required(0, 'of-another-group')).toBe(1);
    primary.told(0, 1_000, 'of-another-group');
    expect(primary.required(0, 'of-another-group')).toBe(0);
  });
});

describe('INFO', () => {
  it('tells how many replicas follow and answer, how often one has come, and a name that a promoted one does not keep', async () => {
    await using primary = await startRedis();
    const client = connectRedis(primary.url, {});
    const look = async () => primaryIn(`${await client.info('replication')}${await client.info('stats')}`);
    expect(await look()).toEqual({
      replid: expect.stringMatching(/^\w{40}$/),
      replicas: 0,
      lately: 0,
      syncs: 0,
      former: '',
    });
    await using replica = await startRedis(['--replicaof', '127.0.0.1', String(primary.port)]);
    await until(async () => (await look()).replicas === 1);
    const { replid, syncs } = await look();
    expect(syncs).toBe(1);

    replica.freeze();
    await until(async () => (await look()).replicas === 0);
    expect(await look()).toMatchObject({ replicas: 0, lately: 1 });
    replica.thaw();
    await until(async () => (await look()).replicas === 1);

    await replica.admin.replicaof('NO', 'ONE');
    const promoted = primaryIn(await replica.admin.info('replication'));
    expect(promoted.replid).not.toBe(replid);
    expect(promoted).toMatchObject({ replicas: 0, former: replid });
    client.disconnect();
  });

  it('tells of replicas that have fallen silent only lately, and are still in step', () => {
    const line = (number: number, state: string, lag: number) =>
      `slave${number}:ip=127.0.0.1,port=6379,state=${state},offset=7,lag=${lag}`;
    const lines = [
      line(0, 'online', 2),
      line(1, 'online', 29),
      line(2, 'online', 30),
      line(3, 'wait_bgsave', 0),
    ];
    expect(primaryIn(lines.join('\r\n'))).toMatchObject({ replicas: 1, lately: 2 });
  });

  it('that tells nothing is of a primary without a name or replicas', () => {
    expect(primaryIn('')).toEqual({ replid: '', replicas: 0, lately: 0, syncs: 0, former: '' });
  });
});
