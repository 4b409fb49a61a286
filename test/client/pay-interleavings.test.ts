import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { forget, intentStore, unsettled } from '../../packages/client/src/index.ts';
import { AMOUNTS, DAY_MS, World } from './paying-world.ts';

/**
 * `pay` in two tabs against a gateway whose answers, and their order, fast-check decides: lost before and after the movement,
 * late, refused, unclear; tabs that die; days that pass. The ledger is looked at after each step.
 */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

type Step = (world: World) => void | Promise<void>;
const tab = fc.nat(1);
const amount = fc.constantFrom(...AMOUNTS);
const which = fc.nat(5);
const named = (name: string, step: Step): Step & { toString(): string } =>
  Object.assign(step, { toString: () => name });

/** Each can happen at any time. */
const STEPS: Readonly<Record<string, fc.Arbitrary<Step>>> = {
  press: fc.tuple(tab, amount).map(([at, of]) => named(`press ${at} ${of}`, (w) => w.press(at, of))),
  'press twice at once': fc.tuple(tab, amount).map(([at, of]) =>
    named(`press twice ${at} ${of}`, (w) => {
      w.press(at, of);
      w.press(at, of);
    }),
  ),
  'press in both tabs': amount.map((of) =>
    named(`press in both ${of}`, (w) => {
      w.press(0, of);
      w.press(1, of);
    }),
  ),
  'reload a tab': tab.map((at) => named(`reload ${at}`, (w) => w.reload(at))),
  'go on after a start': tab.map((at) => named(`start ${at}`, (w) => w.start(at))),
  'list what nobody has seen the end of': tab.map((at) => named(`list ${at}`, (w) => w.list(at))),
  'go on with what was listed': tab.map((at) => named(`finish ${at}`, (w) => w.finish(at))),
  'leave what is under way': tab.map((at) => named(`leave ${at}`, (w) => w.leave(at))),
  acknowledge: which.map((of) => named(`acknowledge ${of}`, (w) => w.acknowledge(of))),
  'answer done': which.map((of) =>
    named(`done ${of}`, (w) => {
      const call = w.take(of);
      call?.answer(w.gateway.carryOut(call, 'done'));
    }),
  ),
  'lose the answer': which.map((of) =>
    named(`answer lost ${of}`, (w) => {
      const call = w.take(of);
      if (call !== undefined) w.gateway.carryOut(call, 'done');
      call?.lose();
    }),
  ),
  'lose the call': which.map((of) => named(`call lost ${of}`, (w) => w.take(of)?.lose())),
  'hold the call up': which.map((of) =>
    named(`held up ${of}`, (w) => {
      const call = w.take(of);
      call?.lose();
      if (call !== undefined) w.gateway.late.push(call);
    }),
  ),
  'a late call arrives': fc.constant(
    named('late call', (w) => {
      const call = w.gateway.late.shift();
      if (call !== undefined) w.gateway.carryOut(call, 'done');
    }),
  ),
  'refuse the payment': which.map((of) =>
    named(`refused ${of}`, (w) => {
      const call = w.take(of);
      call?.answer(w.gateway.carryOut(call, 'refused'));
    }),
  ),
  'refuse the payment, with the key left free': which.map((of) =>
    named(`refused unused ${of}`, (w) => {
      const call = w.take(of);
      call?.answer(w.gateway.refuseUnused(call));
    }),
  ),
  'say that it is unknown': which.map((of) =>
    named(`unknown ${of}`, (w) => {
      const call = w.take(of);
      call?.answer(w.gateway.carryOut(call, 'unsafe'));
    }),
  ),
  'learn how the unknown have ended': fc.constant(named('learn', (w) => w.gateway.learn())),
  'say that it is running': which.map((of) =>
    named(`in progress ${of}`, (w) => {
      const result = { __typename: 'ConflictError', code: 'IDEMPOTENCY_IN_PROGRESS', message: 'Running.' };
      w.take(of)?.answer({ data: { pay: result } });
    }),
  ),
  ...Object.fromEntries(
    ['FORBIDDEN', 'RATE_LIMITED', 'STORE_UNAVAILABLE', 'INTERNAL'].map((code) => [
      `answer ${code}`,
      which.map((of) =>
        named(`${code} ${of}`, (w) =>
          w.take(of)?.answer({ errors: [{ message: code, extensions: { code, retryAfterMs: 200 } }] }),
        ),
      ),
    ]),
  ),
  'a moment passes': fc.constantFrom(100, 600, 40_000).map((ms) =>
    named(`${ms} ms`, async () => {
      await vi.advanceTimersByTimeAsync(ms);
    }),
  ),
  'weeks pass': fc.tuple(fc.constantFrom(10, 31), fc.boolean()).map(([days, isRedrafted]) =>
    named(`${days} days${isRedrafted ? ', another draft' : ''}`, async (w) => {
      // Nobody waits for so long: tabs have been closed, and calls have arrived or never will.
      for (const call of w.gateway.late.splice(0)) w.gateway.carryOut(call, 'done');
      for (const call of w.gateway.pending.splice(0)) w.gateway.carryOut(call, 'done');
      for (const number of [0, 1]) w.reload(number);
      vi.setSystemTime(Date.now() + days * DAY_MS);
      if (isRedrafted) w.redraft();
    }),
  ),
};

const runAll = async (steps: readonly Step[], isShared: boolean): Promise<World> => {
  const world = new World(isShared);
  for (const step of steps) {
    await step(world);
    await world.settle();
    world.check();
  }
  return world;
};

it.each([
  ['two tabs of one app', false],
  ['two devices with one key', true],
])(
  'no interleaving moves money twice, and nobody is told "refused" of what moves: %s',
  async (_who, isShared) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(...Object.values(STEPS)), { maxLength: 60, size: 'max' }),
        async (steps) => {
          const world = await runAll(steps, isShared);
          // At last the network is good: what is under way ends, and nothing moves that should not.
          for (const call of world.gateway.late.splice(0)) world.gateway.carryOut(call, 'done');
          for (let rounds = 0; world.running > 0 && rounds < 1_000; rounds += 1) {
            for (const call of world.gateway.pending.splice(0)) {
              const answer = world.gateway.carryOut(call, 'done');
              if (call.tab.isGone) call.lose();
              else call.answer(answer);
            }
            await vi.advanceTimersByTimeAsync(1_000);
            await world.settle();
            world.check();
          }
          expect(world.running).toBe(0);
        },
      ),
      { numRuns: 500 },
    );
  },
);

const step = async (world: World, ...steps: readonly Step[]): Promise<void> => {
  for (const one of steps) {
    await one(world);
    await world.settle();
  }
};

it('two presses in one tick, each with a store of its own, and in two tabs, send one key', async () => {
  const world = new World();
  await step(
    world,
    (w) => {
      w.press(0, '1.00');
      w.press(0, '1.00');
      w.press(1, '1.00');
    },
    () => {},
  );
  expect(world.gateway.pending).toHaveLength(3);
  expect(new Set(world.gateway.pending.map(({ key }) => key)).size).toBe(1);
});

it('an unknown payment that was acknowledged keeps its key, and nothing is sent until a person lets go of it', async () => {
  const world = new World();
  const store = intentStore(world.tab(0).storage, 'payments');
  const sayUnknown = (w: World) => {
    const call = w.take(0);
    call?.answer(w.gateway.carryOut(call, 'unsafe'));
  };
  await step(
    world,
    (w) => w.press(0, '1.00'),
    sayUnknown,
    (w) => w.acknowledge(0),
  );
  expect(world.ended).toMatchObject([{ status: 'unknown', safeToRetry: false }]);
  expect(await unsettled(store)).toHaveLength(1);
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => w.start(0),
    (w) => w.press(1, '1.00'),
  );
  expect(world.ended.slice(1)).toMatchObject(Array(3).fill({ status: 'unknown', safeToRetry: false }));
  expect(world.gateway.pending).toEqual([]);
  const [intent] = await unsettled(store);
  await forget(store, intent?.idempotencyKey ?? '');
  await step(world, (w) => w.press(0, '1.00'));
  expect(world.gateway.pending.map(({ key }) => key)).not.toEqual([intent?.idempotencyKey]);
  expect(world.gateway.pending).toHaveLength(1);
});

it('a payment that was let go of while it asked sends nothing more, also where the same is paid anew', async () => {
  const world = new World();
  const store = intentStore(world.tab(0).storage, 'payments');
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => w.take(0)?.lose(),
  );
  const [first] = await unsettled(store);
  await forget(store, first?.idempotencyKey ?? '');
  await step(world, (w) => w.press(1, '1.00'));
  const [anew] = world.gateway.pending;
  expect(anew?.key).not.toBe(first?.idempotencyKey);
  // The first one's pause is over.
  await step(world, async () => void (await vi.advanceTimersByTimeAsync(600)));
  expect(world.gateway.pending).toEqual([anew]);
  expect(world.ended).toMatchObject([{ status: 'unknown', safeToRetry: false, intent: first }]);
});

it('an unknown payment that the gateway has learned the end of is told as done, and not made again', async () => {
  const world = new World();
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => {
      const call = w.take(0);
      call?.answer(w.gateway.carryOut(call, 'unsafe'));
    },
    (w) => w.gateway.learn(),
    (w) => w.start(1),
    (w) => {
      const call = w.take(0);
      call?.answer(w.gateway.carryOut(call, 'done'));
    },
  );
  expect(world.ended).toMatchObject([{ status: 'unknown', safeToRetry: false }, { status: 'done' }]);
  expect(world.gateway.moved).toHaveLength(1);
});

it.each([
  ['29 days on nothing is sent again', 29],
  ['with a clock that was put back, neither', -3],
])('an intent in doubt has a date: %s', async (_, days) => {
  const world = new World();
  const store = intentStore(world.tab(1).storage, 'payments');
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => w.take(0)?.lose(),
    (w) => w.reload(0),
  );
  expect(await unsettled(store)).toMatchObject([{ createdAt: new Date().toISOString(), unanswered: 1 }]);
  vi.setSystemTime(Date.now() + days * DAY_MS);
  await step(world, (w) => w.start(1));
  expect(world.gateway.pending).toEqual([]);
  expect(world.ended).toMatchObject([{ status: 'unknown', safeToRetry: false }]);
});

it('a refusal of the moment is not told while a call that was held up may still move the money, and what moved stays found', async () => {
  const world = new World();
  const refuse = (w: World) => {
    const call = w.take(1);
    call?.answer(w.gateway.refuseUnused(call));
  };
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => w.press(1, '1.00'),
    refuse,
  );
  expect(world.ended).toEqual([]);
  await step(
    world,
    (w) => {
      const call = w.take(0);
      call?.answer(w.gateway.carryOut(call, 'done'));
    },
    async () => void (await vi.advanceTimersByTimeAsync(600)),
  );
  expect(world.ended).toMatchObject([{ status: 'done' }, { status: 'done' }]);
  expect(world.gateway.moved).toHaveLength(1);
  expect(await unsettled(intentStore(world.tab(0).storage, 'payments'))).toHaveLength(1);
});

it('a refusal that the gateway says is final is told, also where the answer of an earlier call was lost', async () => {
  const world = new World();
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => {
      const call = w.take(0);
      if (call !== undefined) w.gateway.carryOut(call, 'refused');
      call?.lose();
    },
    async () => void (await vi.advanceTimersByTimeAsync(600)),
    (w) => {
      const call = w.take(0);
      call?.answer(w.gateway.carryOut(call, 'done'));
    },
  );
  expect(world.ended).toMatchObject([{ status: 'refused', code: 'INSUFFICIENT_FUNDS' }]);
});

it('a refusal of one call forgets nothing while the answer of another is lost', async () => {
  const world = new World();
  const refuse = (w: World) =>
    w.take(1)?.answer({ errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }] });
  await step(
    world,
    (w) => w.press(0, '1.00'),
    (w) => w.press(1, '1.00'),
    refuse,
  );
  expect(world.ended).toMatchObject([{ status: 'unknown', safeToRetry: true }]);
  const key = world.gateway.pending[0]?.key;
  await step(world, (w) => w.press(1, '1.00'));
  expect(world.gateway.pending.map((call) => call.key)).toEqual([key, key]);
});
