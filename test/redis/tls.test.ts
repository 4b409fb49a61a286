import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { connectRedis } from '../../src/redis/connection.ts';
import { logOutages } from '../../src/redis/outages.ts';
import { withTlsFiles } from '../../src/redis/url.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { startSecureRedis } from '../helpers/private-ca.ts';
import { until } from '../helpers/until.ts';

const PROGRAM = fileURLToPath(new URL('ended-midway.ts', import.meta.url));

it('ends connections over TLS whenever it is told to, under a certificate that is trusted or not', async () => {
  await using redis = await startSecureRedis();
  for (const trusted of [{}, { NODE_EXTRA_CA_CERTS: redis.authority }]) {
    // In a process of its own: what nobody listens for ends it.
    const ended = await promisify(execFile)(process.execPath, [PROGRAM, redis.url], {
      env: { PATH: process.env['PATH'], ...trusted },
    });
    expect(ended).toEqual({ stdout: 'all ended\n', stderr: '' });
  }
});

const NO_FILES = { ca: undefined, cert: undefined, key: undefined };

/** A connection, and what it has logged. */
function connected(url: string) {
  const lines: string[] = [];
  const redis = connectRedis(url, { maxRetriesPerRequest: null });
  let tries = 0;
  redis.on('error', () => {
    tries += 1;
  });
  logOutages(redis, collectingLogger(lines), 'Redis is away');
  onTestFinished(() => redis.disconnect());
  return { redis, lines, tries: () => tries };
}

it('trusts the authority that it is told of, and shows a certificate where Redis asks for one', async () => {
  await using redis = await startSecureRedis(true);
  const { authority: ca, certificate: cert, key } = redis;
  const trusting = connected(withTlsFiles(redis.url, { ca, cert, key }));
  expect(await trusting.redis.ping()).toBe('PONG');
  expect(trusting.lines).toEqual([]);
  const nameless = connected(withTlsFiles(redis.url, { ...NO_FILES, ca }));
  await until(() => nameless.lines.some((line) => line.includes('"tlsv13 alert certificate required"')));
  // OpenSSL's numbers and places.
  expect(nameless.lines.join()).not.toMatch(/error:|openssl/);
});

it('says why, once, however often it tries: of one Redis, and where Sentinels are asked first', async () => {
  await using redis = await startSecureRedis();
  const port = new URL(redis.url).port;
  for (const url of [redis.url, `rediss+sentinel://127.0.0.1:${port}/events`]) {
    const { lines, tries } = connected(url);
    await until(() => tries() > 5);
    const named = lines.filter((line) => /certificate/.test(line));
    expect(named).toHaveLength(1);
    expect(lines.join()).not.toMatch(/All sentinels|unreachable/);
    expect(lines.length).toBeLessThan(3);
  }
});

it('says when it is back, and tells of the next outage again', async () => {
  await using redis = await startSecureRedis();
  const { redis: client, lines } = connected(withTlsFiles(redis.url, { ...NO_FILES, ca: redis.authority }));
  await client.ping();
  for (const round of [1, 2]) {
    await redis.kill();
    await until(() => lines.length === 2 * round - 1);
    await redis.start();
    await until(() => lines.length === 2 * round);
    expect(lines.at(-1)).toContain('No longer: Redis is away');
  }
});
