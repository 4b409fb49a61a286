import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../src/redis/url.ts';

const plain = {
  tls: false,
  username: undefined,
  password: undefined,
  db: 0,
  primaryName: undefined,
  sentinelPassword: undefined,
  tlsFiles: {},
};

describe('REDIS_URL', () => {
  it('names one Redis, with the usual port and database when none are given', () => {
    expect(parseRedisUrl('redis://cache')).toEqual({
      ...plain,
      form: 'standalone',
      nodes: [{ host: 'cache', port: 6379 }],
    });
  });

  it('carries credentials, percent-decoded, a database and TLS', () => {
    expect(parseRedisUrl('rediss://app:p%40ss:w@cache:7000/3')).toEqual({
      ...plain,
      form: 'standalone',
      nodes: [{ host: 'cache', port: 7000 }],
      tls: true,
      username: 'app',
      password: 'p@ss:w',
      db: 3,
    });
  });

  it('names Sentinels, the primary they watch, and their own password', () => {
    expect(parseRedisUrl('redis+sentinel://:pw@a:1,b,[::1]:3/main?db=2&sentinelPassword=sp')).toEqual({
      form: 'sentinel',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
        { host: '::1', port: 3 },
      ],
      tls: false,
      username: undefined,
      password: 'pw',
      db: 2,
      primaryName: 'main',
      sentinelPassword: 'sp',
      tlsFiles: {},
    });
  });

  it('names the nodes of a Cluster', () => {
    expect(parseRedisUrl('rediss+cluster://a:1,b:2')).toEqual({
      ...plain,
      form: 'cluster',
      tls: true,
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
    });
  });

  it.each([
    ['http://cache'],
    ['redis://'],
    ['redis://a:1,b:2'],
    ['redis+sentinel://a:1'],
    ['redis+cluster://a:1?db=1'],
    ['redis://cache/one'],
    ['redis://:hidden@cache:port'],
  ])('that is %s is refused with the forms wanted, and never repeated', (url) => {
    const refusal = (): unknown => parseRedisUrl(url);
    expect(refusal).toThrow(/redis\+cluster:\/\//);
    expect(refusal).not.toThrow(/hidden/);
  });
});
