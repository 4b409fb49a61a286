import { expect, it } from 'vitest';
import { lookAtRedis } from '../../src/cli/doctor/redis.ts';
import { Secret } from '../../src/common/secret.ts';
import { startRedis } from '../helpers/redis.ts';
import { neverFailOver, startSentinel, startWithSentinel } from '../helpers/redis-topologies.ts';
import { freePort } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';

/** What the doctor says of Redis that is no praise, but for what its settings cost. */
async function wrongs(url: string): Promise<readonly string[]> {
  const findings = await lookAtRedis({ REDIS_URL: new Secret(url), UPSTREAM_URL: undefined });
  return findings
    .filter(({ status, message }) => status !== 'ok' && message.includes('Sentinel'))
    .map(({ message }) => message);
}

it('tells each Sentinel that does not answer, and each that watches another primary, another group or no replica', async () => {
  await using redis = await startWithSentinel();
  await neverFailOver(redis.sentinel);
  await using stranger = await startRedis();
  await using lost = await startSentinel(stranger.port);
  const first = `127.0.0.1:${redis.sentinel.port}`;
  const second = `127.0.0.1:${lost.port}`;
  const silent = `127.0.0.1:${await freePort()}`;
  expect(await wrongs(redis.url)).toEqual([]);

  const said = await wrongs(`redis+sentinel://${first},${second},${silent}/events`);
  expect(said).toEqual([
    expect.stringMatching(`^Sentinel ${silent} does not answer: .*ECONNREFUSED`),
    `the Sentinels name different primaries: ${first} names 127.0.0.1:${redis.primary.port}, ${second} names 127.0.0.1:${stranger.port}`,
    `Sentinel ${second} knows of no replica`,
    expect.stringMatching('^No Sentinel of REDIS_URL'),
  ]);

  await lost.admin.call('SENTINEL', 'REMOVE', 'events');
  expect(await wrongs(`redis+sentinel://${first},${second}/events`)).toEqual([
    `Sentinel ${second} knows no primary named events`,
  ]);
});

it('tells a Sentinel that could begin no failover, and how many of them REDIS_URL leaves out', async () => {
  await using redis = await startWithSentinel();
  await using other = await startSentinel(redis.primary.port);
  for (const sentinel of [redis.sentinel, other]) await neverFailOver(sentinel);
  const knowing = async (): Promise<boolean> => {
    const fields = await other.admin.call('SENTINEL', 'MASTER', 'events');
    return Array.isArray(fields) && fields[fields.indexOf('num-other-sentinels') + 1] === '1';
  };
  await until(knowing);
  await until(async () => (await wrongs(redis.url)).includes('REDIS_URL names 1 of 2 Sentinels'));

  const both = `redis+sentinel://127.0.0.1:${redis.sentinel.port},127.0.0.1:${other.port}/events`;
  await until(async () => (await wrongs(both)).length === 0);
  await redis.sentinel.admin.call('SENTINEL', 'SET', 'events', 'quorum', '3');
  expect(await wrongs(both)).toEqual([
    expect.stringMatching(`^Sentinel 127.0.0.1:${redis.sentinel.port} could begin no failover: NOQUORUM`),
  ]);
});

it('tells a Sentinel that accepts and does not answer, and looks at Redis all the same', async () => {
  await using redis = await startWithSentinel();
  await using frozen = await startSentinel(redis.primary.port);
  for (const sentinel of [redis.sentinel, frozen]) await neverFailOver(sentinel);
  frozen.freeze();
  const silent = `127.0.0.1:${frozen.port}`;
  const url = `redis+sentinel://127.0.0.1:${redis.sentinel.port},${silent}/events`;
  const findings = await lookAtRedis({ REDIS_URL: new Secret(url), UPSTREAM_URL: undefined });
  expect(findings.map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(`^Sentinel ${silent} does not answer`),
      expect.stringMatching('^answers; every replica'),
    ]),
  );
});

it('tells a wrong password of the Sentinels from one of Redis', async () => {
  await using redis = await startWithSentinel();
  await neverFailOver(redis.sentinel);
  await redis.sentinel.admin.call('ACL', 'SETUSER', 'default', 'resetpass', '>of the Sentinels');
  const look = async (password: string) => {
    const url = `${redis.url}?sentinelPassword=${password}`;
    const findings = await lookAtRedis({ REDIS_URL: new Secret(url), UPSTREAM_URL: undefined });
    return findings.filter(({ status }) => status !== 'ok');
  };
  const told = await look('of+Redis');
  expect(told).toEqual([
    expect.objectContaining({ message: expect.stringMatching(/^Sentinel .* does not answer: WRONGPASS/) }),
    {
      check: 'redis',
      status: 'failure',
      message: expect.stringContaining('cannot be used: No Sentinel can be asked: WRONGPASS'),
      cure: 'See to the Sentinels first: a warning about each says what is wrong.',
    },
  ]);
  expect((await look('of%20the%20Sentinels')).filter(({ status }) => status === 'failure')).toEqual([]);
});
