import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  type Answer,
  forget,
  intentStore,
  type KeyValues,
  type Outcome,
  pay,
  type Source,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';

/**
 * `pay` in two tabs against a gateway whose answers, and their order, fast-check decides: lost before and after the movement,
 * late, refused, unclear; tabs that die; days that pass. The ledger is looked at after each step.
 */

interface Result {
  readonly __typename: string;
}
const MUTATION = typed<
  { readonly pay: Result },
  { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
>(
  'mutation Pay($input: PayInput!) { pay(input: $input) { __typename code message safeToRetry retryUntil } }',
);
const AMOUNTS = ['1.00', '2.00'];
const DAY_MS = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

interface Call {
  readonly key: string;
  readonly amount: string;
  readonly tab: Tab;
  answer(answer: Answer<{ pay: Result }>): void;
  lose(): void;
}

/** What the gateway's record has of a key; it is forgotten after 30 days. */
interface Entry {
  readonly at: number;
  state: 'done' | 'refused' | 'unsafe';
}

/** A gateway that moves money at most once for a key, for as long as it knows the key, and an account of every movement. */
class Gateway {
  readonly pending: Call[] = [];
  /** Calls that their senders took for lost, and that are still on their way. */
  readonly late: Call[] = [];
  readonly moved: { readonly key: string; readonly amount: string }[] = [];
  readonly #record = new Map<string, Entry>();

  /** Carries a call out. @returns what the gateway answers. */
  carryOut({ key, amount }: Call, first: Entry['state']): Answer<{ pay: Result }> {
    const known = this.#record.get(key);
    const entry =
      known !== undefined && Date.now() - known.at < 30 * DAY_MS ? known : { at: Date.now(), state: first };
    if (entry !== known) {
      this.#record.set(key, entry);
      // It is not known to the gateway either whether an unclear movement has happened; here it has.
      if (first !== 'refused') this.moved.push({ key, amount });
    }
    const result = {
      done: { __typename: 'PaySuccess' },
      refused: { __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS', message: 'Too little.' },
      unsafe: { __typename: 'OutcomeUnknown', safeToRetry: false, retryUntil: null, message: 'Look first.' },
    }[entry.state];
    return { data: { pay: result } };
  }
}

class Tab {
  isGone = false;
  readonly source: Source;
  readonly storage: KeyValues;

  constructor(gateway: Gateway, values: Map<string, string>, used: () => void) {
    const query = (_: unknown, { input }: { input: { idempotencyKey: string; amount: string } }) =>
      new Promise<Answer<{ pay: Result }>>((resolve, reject) => {
        const { idempotencyKey: key, amount } = input;
        const lose = () => reject(new Error('the network is gone'));
        gateway.pending.push({ key, amount, tab: this, answer: resolve, lose });
      });
    // Of the documents that a source takes, these tests send one.
    this.source = { query, subscribe: () => () => {} } as unknown as Source;
    const alive = async () => {
      // Another tab, or another call, may come in between wherever a phone's storage takes a while.
      await turn();
      used();
      if (this.isGone) throw new Error('the tab is gone');
    };
    this.storage = {
      async getItem(key) {
        await alive();
        return values.get(key) ?? null;
      },
      async setItem(key, value) {
        await alive();
        values.set(key, value);
      },
    };
  }
}

type Ended = Outcome<Result> & { readonly amount: string };

class World {
  readonly gateway = new Gateway();
  readonly #values = new Map<string, string>();
  readonly tabs: Tab[] = [];
  readonly ended: Ended[] = [];
  readonly refused: string[] = [];
  /** How often a payment of each amount was seen to be done, and acknowledged. */
  readonly acknowledged = new Map<string, Set<string>>();
  running = 0;
  /** How often a tab has used its storage. */
  #uses = 0;

  constructor() {
    for (const number of [0, 1]) this.reload(number);
  }

  tab(number: number): Tab {
    const tab = this.tabs[number];
    if (tab === undefined) throw new Error('there are two tabs');
    return tab;
  }

  reload(number: number): void {
    const before = this.tabs[number];
    if (before !== undefined) before.isGone = true;
    this.tabs[number] = new Tab(this.gateway, this.#values, () => {
      this.#uses += 1;
    });
  }

  /** Each press has a store of its own, as a component that makes it in place. */
  press(number: number, amount: string): void {
    const { source, storage } = this.tab(number);
    this.running += 1;
    void pay(source, MUTATION, { amount }, { store: intentStore(storage, 'payments') })
      .then(
        (outcome) => {
          this.ended.push({ ...outcome, amount });
          if (outcome.status === 'refused') this.refused.push(outcome.intent.idempotencyKey);
        },
        () => {},
      )
      .finally(() => {
        this.running -= 1;
      });
  }

  async start(number: number): Promise<void> {
    const intents = await unsettled(intentStore(this.tab(number).storage, 'payments'));
    for (const { input } of intents) this.press(number, String(input['amount']));
  }

  async acknowledge(which: number): Promise<void> {
    const outcome = this.ended[which % Math.max(1, this.ended.length)];
    await outcome?.acknowledge().catch(() => {});
    if (outcome?.status !== 'done') return;
    const keys = this.acknowledged.get(outcome.amount) ?? new Set();
    this.acknowledged.set(outcome.amount, keys.add(outcome.intent.idempotencyKey));
  }

  take(which: number): Call | undefined {
    const { pending } = this.gateway;
    return pending.splice(which % Math.max(1, pending.length), 1)[0];
  }

  /** Lets everything happen that waits for nobody: until the tabs have left their storage alone for a while. */
  async settle(): Promise<void> {
    for (let quiet = 0, before = this.#uses; quiet < 15; quiet += 1) {
      await turn();
      if (this.#uses !== before) quiet = 0;
      before = this.#uses;
    }
  }

  check(): void {
    for (const amount of AMOUNTS) {
      const moved = this.gateway.moved.filter((movement) => movement.amount === amount);
      const licensed = 1 + (this.acknowledged.get(amount)?.size ?? 0);
      expect(moved.length, `movements of ${amount}`).toBeLessThanOrEqual(licensed);
    }
    for (const { key } of this.gateway.moved) expect(this.refused).not.toContain(key);
  }
}

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
  'say that it is unknown': which.map((of) =>
    named(`unknown ${of}`, (w) => {
      const call = w.take(of);
      call?.answer(w.gateway.carryOut(call, 'unsafe'));
    }),
  ),
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
  'weeks pass': fc.constantFrom(10, 31).map((days) =>
    named(`${days} days`, async (w) => {
      // Nobody waits for so long: tabs have been closed, and calls have arrived or never will.
      for (const call of w.gateway.late.splice(0)) w.gateway.carryOut(call, 'done');
      for (const call of w.gateway.pending.splice(0)) w.gateway.carryOut(call, 'done');
      for (const number of [0, 1]) w.reload(number);
      vi.setSystemTime(Date.now() + days * DAY_MS);
    }),
  ),
};

const runAll = async (steps: readonly Step[]): Promise<World> => {
  const world = new World();
  for (const step of steps) {
    await step(world);
    await world.settle();
    world.check();
  }
  return world;
};

it('no interleaving moves money twice, and nobody is told "refused" of what moves', {
  timeout: 240_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(...Object.values(STEPS)), { maxLength: 60, size: 'max' }),
      async (steps) => {
        const world = await runAll(steps);
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
});

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
