import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { failoverAuthorityOf } from '../../src/redis/failover.ts';

/** When a Cluster is asked, in seconds since 1970. */
const NOW = 1_000_000;
const authority = failoverAuthorityOf('redis+cluster://127.0.0.1:7000');

/** A line of CLUSTER NODES. @param silentMs for how long it has not been heard */
const node = (id: string, flags: string, { of = '-', silentMs = 0, slots = '' } = {}): string =>
  [id, '127.0.0.1:7000@17000', flags, of, 0, NOW * 1_000 - silentMs, 1, 'connected', slots].join(' ').trim();

/** A server that sees the Cluster so. Nothing else is asked of it. */
const seeing = (...lines: readonly string[]) =>
  ({
    cluster: async () => `${lines.join('\n')}\n`,
    time: async () => [String(NOW), '0'],
    info: async () => `master_replid2:${'a'.repeat(40)}\r\n`,
  }) as unknown as Redis;

const OWN = node('own', 'myself,master', { slots: '0-5000' });
const others = (flags: string, slots = '0-5000') =>
  ['second', 'third'].map((id) => seeing(node('own', flags, { slots }), node(id, 'myself,master')));

it.each([
  ['follows', 'slave', 0, 1],
  ['has failed, and may be back in a moment', 'slave,fail', 29_999, 1],
  ['has failed for long', 'slave,fail', 30_000, 0],
  ['is taken for gone by this primary alone', 'slave,fail?', 60_000, 1],
])(
  'a replica that %s counts among those that a Cluster could promote, or not',
  async (_what, flags, silentMs, promotable) => {
    const primary = seeing(OWN, node('replica', flags, { of: 'own', silentMs }));
    expect(await authority?.ask(primary)).toEqual({ promotable, noticedAfterMs: 0 });
  },
);

it.each([
  ['may be back in a moment', 29_999, '', 1],
  ['has been away for long', 30_000, '', 0],
  ['has slots of its own', 0, '5001-9000', 0],
])(
  'the primary that another of a Cluster has replaced, and that %s, may be back as its replica, or not',
  async (_what, silentMs, slots, promotable) => {
    const primary = seeing(OWN, node('replaced', 'master,fail', { silentMs, slots }));
    expect(await authority?.ask(primary)).toEqual({ promotable, noticedAfterMs: 0 });
  },
);

it.each([
  ['has not failed', 'master', '0-5000', true],
  ['has failed, as they see it, and is about to be replaced', 'master,fail', '0-5000', false],
  ['is about to be taken for failed', 'master,fail?', '0-5000', false],
  ['has no slots left', 'master', '', false],
  ['follows another', 'slave', '0-5000', false],
])(
  'a primary of a Cluster is known by most of the others where it %s',
  async (_what, flags, slots, isKnown) => {
    const word = await authority?.ask(seeing(OWN), others(flags, slots));
    expect(word).toEqual(isKnown ? { promotable: 0, noticedAfterMs: 0 } : undefined);
  },
);
