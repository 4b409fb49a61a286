import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Party } from '../../../src/common/party.ts';
import type { Urgency } from '../../../src/common/turns.ts';
import { leaverOf } from '../../../src/common/waiters.ts';
import {
  type Coalescer,
  createCoalescer,
  type JoinedRead,
  type ReadAnswer,
} from '../../../src/upstream/call/coalesce.ts';
import { CutShortError } from '../../../src/upstream/call/errors.ts';
import { until } from '../../helpers/until.ts';

const WAITS = { queuedMs: 300, unreadMs: 20 };

/** Reads that have begun, in their order; each ends when the test says so. */
let reads: PromiseWithResolvers<string>[];
/** Who waits for each of them. */
let parties: Party[];
/** The reads of others that gave an answer. */
let joined: JoinedRead[];
let now: number;
let coalescer: Coalescer;

beforeEach(() => {
  reads = [];
  parties = [];
  joined = [];
  now = 0;
  coalescer = createCoalescer(() => now);
});

interface Asked {
  readonly caller?: string;
  readonly path?: string;
  readonly keptMs?: number;
  readonly isFresh?: boolean;
  readonly signal?: AbortSignal;
  readonly deadline?: number;
  readonly urgency?: Urgency;
  /** How long the text of the answer is. */
  readonly bytes?: number;
}

const answerOf = async ({
  caller = 'one',
  path = '/accounts',
  keptMs = 0,
  isFresh = false,
  signal,
  deadline = Date.now() + 60_000,
  urgency = 'operations',
  bytes = 6,
}: Asked): Promise<ReadAnswer> =>
  coalescer.read({
    caller,
    path,
    asker: {
      requester: { caller: 'person', group: 'person' },
      urgency,
      deadline,
      leaver: signal && leaverOf(signal),
    },
    keptMs,
    isFresh,
    read: (party) => {
      const read = Promise.withResolvers<string>();
      reads.push(read);
      parties.push(party);
      return read.promise.then((body) => ({ body, bytes, waits: WAITS }));
    },
    joined: (read) => {
      joined.push(read);
    },
  });
const ask = async (asked: Asked = {}): Promise<unknown> => (await answerOf(asked)).body;

describe('a read that one caller has begun', () => {
  it('serves whoever of the same caller asks for the same meanwhile', async () => {
    const both = [ask(), ask()];
    reads[0]?.resolve('answer');
    expect(await Promise.all(both)).toEqual(['answer', 'answer']);
    expect([reads.length, joined.length]).toEqual([1, 1]);
  });

  it('is told of to those who joined it: when it began, and how long it took', async () => {
    now = 200;
    const first = ask();
    now = 700;
    const second = ask();
    now = 900;
    reads[0]?.resolve('answer');
    await Promise.all([first, second]);
    expect(joined).toEqual([{ startedAt: 200, milliseconds: 700, waits: WAITS, isKept: false }]);
  });

  it.each([
    ['another caller', 'two', '/accounts'],
    ['another path', 'one', '/customers'],
  ])('serves nobody who is %s', (_what, caller, path) => {
    void ask();
    void ask({ caller, path });
    expect(reads).toHaveLength(2);
  });

  it('serves nobody once it has its answer', async () => {
    const first = ask();
    reads[0]?.resolve('old');
    await first;
    const second = ask();
    reads[1]?.resolve('new');
    expect(await second).toBe('new');
  });

  it('serves nobody who asks after the caller has changed something', () => {
    void ask();
    coalescer.forget('one');
    void ask();
    expect(reads).toHaveLength(2);
  });

  it.each(['after a change', 'a second later'])(
    'serves those who ask while it lasts, though one of before ends meanwhile (%s)',
    async (what) => {
      const before = ask();
      if (what === 'after a change') coalescer.forget('one');
      else now = 1_001;
      const first = ask({ keptMs: 5_000 });
      reads[0]?.resolve('old');
      expect(await before).toBe('old');
      const second = ask();
      expect(reads).toHaveLength(2);
      reads[1]?.resolve('new');
      expect(await Promise.all([first, second])).toEqual(['new', 'new']);
      // It is kept, too.
      expect(await ask({ keptMs: 5_000 })).toBe('new');
      expect(reads).toHaveLength(2);
    },
  );

  it('serves nobody when it began more than a second ago', () => {
    void ask();
    now = 1_001;
    void ask();
    expect(reads).toHaveLength(2);
  });

  it('and fails, fails for itself alone: whoever has waited for it reads for itself', async () => {
    const [first, second] = [ask(), ask()];
    reads[0]?.reject(new Error('its caller has left'));
    await expect(first).rejects.toThrow('its caller has left');
    reads[1]?.resolve('answer');
    expect(await second).toBe('answer');
    expect(joined).toEqual([]);
  });
});

describe('a read that fails', () => {
  it('is made once more for all who had joined it, and that answer or error is theirs', async () => {
    const asked = [ask(), ask(), ask(), ask()];
    const told = Promise.allSettled(asked);
    reads[0]?.reject(new Error('first'));
    await until(() => reads.length === 2);
    reads[1]?.reject(new Error('second'));
    expect((await told).map((one) => (one.status === 'rejected' ? one.reason.message : one.value))).toEqual([
      'first',
      'second',
      'second',
      'second',
    ]);
    expect(reads).toHaveLength(2);
  });

  it('is joined by those who come during the second one', async () => {
    const asked = [ask(), ask()];
    const told = Promise.allSettled(asked);
    reads[0]?.reject(new Error('first'));
    await until(() => reads.length === 2);
    const late = ask();
    reads[1]?.resolve('answer');
    expect(await late).toBe('answer');
    expect(await told).toMatchObject([{ status: 'rejected' }, { value: 'answer' }]);
    expect([reads.length, joined.length]).toEqual([2, 1]);
  });

  const cutShort = () => new CutShortError(200, new Error('late'), true);

  it('is no end for those who joined one of a caller with little time left as their second', async () => {
    const [first, patient] = [ask(), ask()];
    now = 1_001;
    const hurried = ask();
    const told = Promise.allSettled([first, hurried]);
    reads[0]?.reject(new Error('first'));
    await until(() => parties[1]?.waiters.size === 2);
    reads[1]?.reject(cutShort());
    await Promise.race([until(() => reads.length === 3), patient]);
    reads[2]?.resolve('answer');
    expect(await patient).toBe('answer');
    expect(await told).toMatchObject([
      { reason: { message: 'first' } },
      { reason: { code: 'UPSTREAM_TIMEOUT' } },
    ]);
  });

  it('is made once more also where one of a caller with little time left was joined before', async () => {
    const [hurried, second, patient] = [ask(), ask(), ask()];
    const told = Promise.allSettled([hurried, second]);
    reads[0]?.reject(cutShort());
    await until(() => parties[1]?.waiters.size === 2);
    reads[1]?.reject(new Error('second'));
    await Promise.race([until(() => reads.length === 3), patient]);
    reads[2]?.resolve('answer');
    expect(await patient).toBe('answer');
    expect(await told).toMatchObject([
      { reason: { code: 'UPSTREAM_TIMEOUT' } },
      { reason: { message: 'second' } },
    ]);
  });
});

describe('a read that several wait for', () => {
  it('goes on when the one who began it leaves, and serves the others', async () => {
    const leaving = new AbortController();
    const [first, second] = [ask({ signal: leaving.signal }), ask()];
    leaving.abort();
    await expect(first).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    expect(parties[0]?.isGone).toBe(false);
    reads[0]?.resolve('answer');
    expect(await second).toBe('answer');
    expect([reads.length, joined.length]).toEqual([1, 1]);
  });

  it('is given up when the last of them leaves, and not joined then', async () => {
    const leaving = [new AbortController(), new AbortController()];
    const asked = leaving.map(({ signal }) => ask({ signal }));
    for (const [at, one] of leaving.entries()) {
      expect(parties[0]?.isGone).toBe(false);
      one.abort();
      await expect(asked[at]).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    }
    expect(parties[0]?.isGone).toBe(true);
    const next = ask();
    expect(reads).toHaveLength(2);
    reads[1]?.resolve('answer');
    expect(await next).toBe('answer');
  });

  it('is as pressing as the most pressing of them, and no more once that one leaves', async () => {
    const leaving = new AbortController();
    void ask({ urgency: 'streams' });
    expect(parties[0]?.urgency).toBe('streams');
    const pressing = ask({ urgency: 'operations', signal: leaving.signal });
    expect(parties[0]?.urgency).toBe('operations');
    leaving.abort();
    await expect(pressing).rejects.toThrow();
    expect(parties[0]?.urgency).toBe('streams');
  });

  it('is waited for by each in its own time, and lasts as long as the longest', async () => {
    const latest = Date.now() + 60_000;
    const hurried = ask({ deadline: Date.now() + 20 });
    const patient = ask({ deadline: latest });
    expect(parties[0]?.deadline).toBe(latest);
    await expect(hurried).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    reads[0]?.resolve('answer');
    expect(await patient).toBe('answer');
    expect(reads).toHaveLength(1);
  });

  it('is not read again by one whose own time is over, or who has left', async () => {
    const leaving = new AbortController();
    void ask();
    const hurried = ask({ deadline: Date.now() + 20 });
    const left = ask({ signal: leaving.signal });
    leaving.abort();
    await expect(left).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    await expect(hurried).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    expect(reads).toHaveLength(1);
  });

  it('hears nothing more of those who had their answer', async () => {
    const signals = [new AbortController(), new AbortController()];
    const asked = signals.map(({ signal }) => ask({ signal }));
    reads[0]?.resolve('answer');
    await Promise.all(asked);
    expect(parties[0]?.isGone).toBe(true);
    for (const { signal } of signals) expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('an answer that is kept', () => {
  const keptMs = 5_000;
  const answered = async (text: string): Promise<void> => {
    const asked = ask({ keptMs });
    reads.at(-1)?.resolve(text);
    expect(await asked).toBe(text);
  };

  it('serves those who ask later, for as long as it is kept', async () => {
    await answered('old');
    now = keptMs;
    expect(await ask({ keptMs })).toBe('old');
    expect([reads.length, joined.length]).toEqual([1, 1]);
    now = keptMs + 1;
    await answered('new');
    expect(reads).toHaveLength(2);
  });

  it('serves nobody who asks for nothing that was kept', async () => {
    await answered('old');
    void ask();
    void ask({ keptMs, path: '/customers' });
    void ask({ keptMs, caller: 'two' });
    expect(reads).toHaveLength(4);
  });

  it('serves nobody who asks afresh, and is replaced by what that one reads', async () => {
    await answered('old');
    const fresh = ask({ keptMs, isFresh: true });
    expect(reads).toHaveLength(2);
    const joining = ask({ keptMs, isFresh: true });
    expect(reads).toHaveLength(2);
    reads[1]?.resolve('new');
    expect([await fresh, await joining, await ask({ keptMs })]).toEqual(['new', 'new', 'new']);
  });

  it('is told of as such: when its read began, and how long that took', async () => {
    now = 1_000;
    const asked = ask({ keptMs });
    now = 1_040;
    reads[0]?.resolve('answer');
    await asked;
    now = 4_000;
    await ask({ keptMs });
    expect(joined).toEqual([{ startedAt: 1_000, milliseconds: 40, waits: WAITS, isKept: true }]);
  });

  it('serves nobody once more is known than it shows, and again when that happens again', async () => {
    for (let round = 1; round <= 2; round += 1) {
      await answered(`answer ${round}`);
      coalescer.forget('two');
      expect(await ask({ keptMs })).toBe(`answer ${round}`);
      coalescer.forget('one');
    }
    await answered('answer 3');
    expect(reads).toHaveLength(3);
  });

  it.each(['forget', 'noteChange'] as const)(
    'serves nobody after a %s, also where it was in place of one of before',
    async (hears) => {
      await answered('old');
      now = keptMs + 1;
      await answered('new');
      coalescer[hears]('one');
      await answered('newest');
      expect(reads).toHaveLength(3);
    },
  );

  it.each(['forget', 'noteChange'] as const)('is not kept after a %s while it was read', async (hears) => {
    const asked = ask({ keptMs });
    coalescer[hears]('one');
    reads[0]?.resolve('old');
    expect(await asked).toBe('old');
    await answered('new');
    expect(reads).toHaveLength(2);
  });

  it('serves nobody after a change, also where another of its caller was replaced before that', async () => {
    const read = async (path: string, isFresh = false): Promise<number> => {
      const before = reads.length;
      const asked = ask({ keptMs, path, isFresh });
      reads.at(-1)?.resolve(path);
      expect(await asked).toBe(path);
      return reads.length - before;
    };
    for (const path of ['/accounts', '/customers']) expect(await read(path)).toBe(1);
    expect(await read('/customers', true)).toBe(1);
    expect([await read('/accounts'), await read('/customers')]).toEqual([0, 0]);
    coalescer.forget('one');
    expect([await read('/accounts'), await read('/customers')]).toEqual([1, 1]);
  });

  it('serves nobody after a change, and none is kept that was read while the service may lag behind it', async () => {
    await answered('before');
    coalescer.noteChange('one');
    for (const at of [0, 3_000, 5_000]) {
      now = at;
      await answered(`at ${at}`);
    }
    expect(joined).toEqual([]);
    now = 5_001;
    await answered('after');
    expect(await ask({ keptMs })).toBe('after');
    expect([reads.length, joined.length]).toEqual([5, 1]);
  });

  it('is not kept of a read that began right after a change and took longer than the service may lag behind', async () => {
    coalescer.noteChange('one');
    now = 4_900;
    const slow = ask({ keptMs });
    now = 5_001;
    coalescer.noteChange('two');
    reads[0]?.resolve('may be old');
    await slow;
    await answered('after');
    expect(joined).toEqual([]);
  });

  it('is none where the latest of several changes was just heard of, and is one for whoever has heard of none', async () => {
    coalescer.noteChange('one');
    now = 4_000;
    coalescer.noteChange('three');
    coalescer.noteChange('one');
    now = 7_000;
    coalescer.noteChange('three');
    await answered('may be old');
    await answered('may be old, too');
    const others = ask({ keptMs, caller: 'two' });
    reads[2]?.resolve('of two');
    await others;
    expect(await ask({ keptMs, caller: 'two' })).toBe('of two');
    expect([reads.length, joined.length]).toEqual([3, 1]);
  });

  it('may be shared while it is read, also right after a change', async () => {
    coalescer.noteChange('one');
    const both = [ask({ keptMs }), ask({ keptMs })];
    reads[0]?.resolve('answer');
    expect(await Promise.all(both)).toEqual(['answer', 'answer']);
    expect(reads).toHaveLength(1);
  });

  it('is kept when the one who began to read has left', async () => {
    const leaving = new AbortController();
    const [first, second] = [ask({ keptMs, signal: leaving.signal }), ask({ keptMs })];
    leaving.abort();
    await expect(first).rejects.toThrow();
    reads[0]?.resolve('answer');
    expect(await second).toBe('answer');
    expect(await ask({ keptMs })).toBe('answer');
    expect(reads).toHaveLength(1);
  });

  it('takes no more room than all of them may, the latest first, and one that is longer takes none', async () => {
    const MEGABYTE = 1024 * 1024;
    const read = async (path: string, megabytes: number): Promise<number> => {
      const before = reads.length;
      const asked = ask({ keptMs, path, bytes: megabytes * MEGABYTE });
      // An answer that is kept makes no read.
      reads[before]?.resolve(path);
      expect(await asked).toBe(path);
      return reads.length - before;
    };
    for (let round = 1; round <= 2; round += 1) {
      const paths = Array.from({ length: 4 }, (_, index) => `/accounts?page=${round}${index}`);
      for (const path of paths) expect(await read(path, 20)).toBe(1);
      // Three of twenty fit into 64.
      expect(await Promise.all(paths.slice(1).map((path) => read(path, 20)))).toEqual([0, 0, 0]);
      expect(await read(`/accounts?page=${round}0`, 65)).toBe(1);
      expect(await read(`/accounts?page=${round}0`, 65)).toBe(1);
      expect(await read(`/accounts?page=${round}3`, 20)).toBe(0);
    }
  });

  it('is one of 256 at most', async () => {
    const read = async (page: number): Promise<void> => {
      const before = reads.length;
      const asked = ask({ keptMs, path: `/accounts?page=${page}` });
      reads[before]?.resolve('answer');
      await asked;
    };
    for (let page = 0; page <= 256; page += 1) await read(page);
    for (let page = 1; page <= 256; page += 1) await read(page);
    expect(reads).toHaveLength(257);
    await read(0);
    expect(reads).toHaveLength(258);
  });

  it('is none where the read has failed', async () => {
    const asked = ask({ keptMs });
    reads[0]?.reject(new Error('failed'));
    await expect(asked).rejects.toThrow('failed');
    await answered('answer');
  });
});
