import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  finish,
  forget,
  type Intent,
  type IntentStore,
  pay,
  type Source,
  typed,
} from '../../packages/client/src/index.ts';
import { folder, installWithClient } from '../helpers/packages.ts';
import { snippets } from './client-pages.ts';

type Fields = Readonly<Record<string, unknown>>;
interface Outcome {
  readonly status: string;
  readonly intent: Intent;
  acknowledge(): Promise<void>;
}
interface Form {
  readonly fields: Fields;
  readonly pressed: boolean;
  keep(typed: Fields): Promise<void>;
  press(source: object, mutation: object, options: object): Promise<Outcome | undefined>;
}
type Open = (storage: object, person: string, id: string, first: Fields, store: IntentStore) => Promise<Form>;

const PACKAGES = 'test/clients';
const ADDRESS = 'form 7f3a of ana';
const TAKEN = '`newKey` has to give each payment its own key. Nothing was sent.';
const PayOut = typed<
  { readonly createMoneyOut: { readonly __typename: string } },
  { readonly input: { readonly idempotencyKey: string } }
>(
  'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename ... on UserError { code message } } }',
);

let work: string;
/** `openForm` of two tabs: neither has the other's variables. */
let tabs: readonly [Open, Open];
beforeAll(async () => {
  await installWithClient(PACKAGES);
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
  const opens = ['one', 'two'].map(async (name) => {
    const file = join(work, `${name}.js`);
    await writeFile(file, snippets.get('form') ?? '');
    return ((await import(pathToFileURL(file).href)) as { openForm: Open }).openForm;
  });
  tabs = [await (opens[0] as Promise<Open>), await (opens[1] as Promise<Open>)];
});
afterAll(async () => {
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

const textOf = (fields: Fields) =>
  JSON.stringify(Object.entries(JSON.parse(JSON.stringify(fields))).toSorted());
const referenceOf = (fields: Fields | undefined) => fields?.['externalReference'];

interface Step {
  readonly name: string;
  take(): void;
}

/** A browser, and a gateway that carries out a key once. Each of their steps waits until the test takes it. */
class World {
  readonly kept = new Map<string, string>();
  readonly paid = new Map<string, Fields>();
  /** What was pressed and is not any more, by one that changed what is kept. */
  readonly unmarked: string[] = [];
  /** The references whose ends the person has seen. */
  readonly seen = new Set<unknown>();
  isUp = true;
  failing: string | undefined;
  #intents: readonly Intent[] = [];
  #waiting: Step[] = [];

  step<Result>(name: string, work: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      const take = () => {
        if (this.failing === name) reject(new Error(`${name} fails.`));
        else
          try {
            resolve(work());
          } catch (cause) {
            reject(cause);
          }
      };
      this.#waiting.push({ name, take });
    });
  }

  /** Takes steps until some work is over, or until none is left that `pick` gives the place of. */
  async run<Result>(
    work: Promise<Result>,
    pick: (names: readonly string[]) => number = () => 0,
  ): Promise<Result | undefined> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    work.then(over, over);
    for (;;) {
      // All that follows from the last step, and asks for the next ones.
      await setImmediate();
      if (isOver) return work;
      if (this.#waiting.length === 0) continue;
      const at = pick(this.#waiting.map(({ name }) => name));
      if (at < 0) return undefined;
      this.#waiting.splice(at, 1)[0]?.take();
    }
  }

  readonly storage = {
    getItem: (name: string) => this.step('getItem', () => this.kept.get(name) ?? null),
    setItem: (name: string, value: string) =>
      this.step('setItem', () => {
        const [before, after] = [this.kept.get(name), value].map((text) => JSON.parse(text ?? 'null'));
        const isSame = referenceOf(before?.fields ?? before) === referenceOf(after.fields ?? after);
        if (before?.pressed && isSame && !after.pressed) this.unmarked.push(value);
        this.kept.set(name, value);
      }),
    removeItem: (name: string) => this.step('removeItem', () => void this.kept.delete(name)),
  };

  /** The person's store, as one tab has it. */
  store(): IntentStore {
    return {
      load: () => this.step('load', () => this.#intents),
      save: (next, before) =>
        this.step('save', () => {
          if (JSON.stringify(before) !== JSON.stringify(this.#intents)) return false;
          this.#intents = next;
          return true;
        }),
    };
  }

  readonly source = {
    query: (_: unknown, { input, idempotencyKey }: { input?: Fields; idempotencyKey?: string }) =>
      this.step('query', () => {
        if (input === undefined)
          return { data: { payment: this.paid.has(`${idempotencyKey}`) ? { state: 'DONE' } : null } };
        const { idempotencyKey: key, ...fields } = input;
        const earlier = this.paid.get(`${key}`);
        this.paid.set(`${key}`, earlier ?? fields);
        if (!this.isUp) throw new Error('The answer is lost.');
        const isReused = earlier !== undefined && textOf(earlier) !== textOf(fields);
        const error = {
          __typename: 'ConflictError',
          code: 'IDEMPOTENCY_KEY_REUSED',
          message: 'Another input.',
        };
        return { data: { createMoneyOut: isReused ? error : { __typename: 'CreateMoneyOutSuccess' } } };
      }),
    subscribe: () => () => {},
  } as unknown as Source;

  open(tab: 0 | 1 = 0, store = this.store(), first: Fields = { amount: '5.00' }): Promise<Form> {
    return tabs[tab](this.storage, 'ana', '7f3a', first, store);
  }

  /** Presses, and sees the end. What an outcome tells is what the screen held. */
  async press(form: Form): Promise<string | undefined> {
    const held = textOf(form.fields);
    // No time is left to ask again: one call, and its end.
    const outcome = await form.press(this.source, PayOut, { patienceMs: -1 });
    if (outcome === undefined) return undefined;
    expect(textOf(outcome.intent.input)).toBe(held);
    if (outcome.status !== 'unknown') this.seen.add(referenceOf(outcome.intent.input));
    await outcome.acknowledge();
    return outcome.status;
  }

  /** Shows each end, as the next start of the app does, or another screen. */
  async showAll(): Promise<void> {
    const store = this.store();
    for (const intent of await store.load()) {
      if (intent.acknowledgedAt !== undefined) continue;
      const outcome = await finish(this.source, PayOut, intent, { store, patienceMs: -1 });
      if (outcome.status !== 'unknown') this.seen.add(referenceOf(intent.input));
      await outcome.acknowledge();
    }
  }

  get amounts(): readonly unknown[] {
    return [...this.paid.values()].map(({ amount }) => amount);
  }

  /** The form that the address has, as it is kept. */
  get atAddress() {
    return JSON.parse(this.kept.get(ADDRESS) ?? 'null') as { readonly pressed?: boolean } | null;
  }
}

/** Numbers that are the same for one seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

describe('what is typed after a press', () => {
  it('is not paid, and takes no mark away, whichever step the press has come to', async () => {
    for (let steps = 0; steps < 12; steps += 1) {
      const world = new World();
      world.isUp = false;
      const form = (await world.run(world.open())) as Form;
      const pressing = world.press(form);
      let left = steps;
      await world.run(pressing, () => (left-- > 0 ? 0 : -1));
      const keeping = form.keep({ amount: '50.00' });
      expect(form.pressed).toBe(true);
      expect(await world.run(pressing)).toBe('unknown');
      await world.run(keeping);
      expect([world.amounts, form.fields['amount'], world.unmarked]).toEqual([['5.00'], '5.00', []]);
      expect(world.atAddress?.pressed).toBe(true);
      world.isUp = true;
      await world.run(world.showAll());
      expect(await world.run(world.press(form))).toBeUndefined();
      expect(world.paid.size).toBe(1);
    }
  });

  it('while the last letters are not kept yet: these are paid', async () => {
    const world = new World();
    const form = (await world.run(world.open())) as Form;
    const keeping = form.keep({ amount: '7.00' });
    expect(await world.run(world.press(form))).toBe('done');
    await world.run(keeping);
    expect([world.amounts, world.unmarked, world.atAddress]).toEqual([['7.00'], [], null]);
  });

  it('changes neither the screen nor what is kept once the payment is unknown', async () => {
    const world = new World();
    world.isUp = false;
    const form = (await world.run(world.open())) as Form;
    expect(form.pressed).toBe(false);
    expect(await world.run(world.press(form))).toBe('unknown');
    const before = world.kept.get(ADDRESS);
    await world.run(form.keep({ amount: '900.00' }));
    expect([form.pressed, form.fields['amount'], world.kept.get(ADDRESS)]).toEqual([true, '5.00', before]);
    world.isUp = true;
    expect(await world.run(world.press(form))).toBe('done');
    expect(world.amounts).toEqual(['5.00']);
  });
});

it.each([0, 1] as const)(
  'a press while another one is not kept yet goes on with it, and the address keeps its form: tab %i',
  async (tab) => {
    const world = new World();
    const form = (await world.run(world.open())) as Form;
    const pressing = world.press(form);
    // The store of the first press is slow.
    await world.run(pressing, (names) => (names[0] === 'save' ? -1 : 0));
    const butSave = (names: readonly string[]) => names.findIndex((name) => name !== 'save');
    const other = (await world.run(world.open(tab), butSave)) as Form;
    expect([other.pressed, referenceOf(other.fields)]).toEqual([true, referenceOf(form.fields)]);
    const again = world.press(other);
    await world.run(again, butSave);
    expect(world.atAddress?.pressed).toBe(true);
    expect(await world.run(Promise.all([pressing, again]))).toEqual(['done', 'done']);
    expect(await world.run(world.press(other))).toBeUndefined();
    expect(world.paid.size).toBe(1);
  },
);

it('a screen that missed what another tab pressed sends nothing, and opens to what was pressed', async () => {
  const world = new World();
  world.isUp = false;
  const [form, stale] = [(await world.run(world.open())) as Form, (await world.run(world.open(1))) as Form];
  await world.run(world.press(form));
  await world.run(stale.keep({ amount: '9.00' }));
  world.isUp = true;
  expect(await world.run(world.press(stale))).toBeUndefined();
  const opened = (await world.run(world.open(1))) as Form;
  expect([opened.pressed, opened.fields]).toEqual([true, form.fields]);
  expect(await world.run(world.press(opened))).toBe('done');
  // The address has another form by now, which the screens of the former leave alone.
  const next = (await world.run(world.open())) as Form;
  expect(await world.run(Promise.all([form, stale, opened].map((one) => world.press(one))))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(referenceOf(((await world.run(world.open())) as Form).fields)).toBe(referenceOf(next.fields));
  expect(world.amounts).toEqual(['5.00']);
});

it('two that open one address at once have one form', async () => {
  const world = new World();
  const forms = await world.run(Promise.all([world.open(), world.open()]));
  expect(new Set(forms?.map(({ fields }) => referenceOf(fields))).size).toBe(1);
});

it('a payment that was let go of leaves its form, and a storage that fails behind a payment hides no end', async () => {
  const world = new World();
  world.isUp = false;
  const form = (await world.run(world.open())) as Form;
  await world.run(world.press(form));
  for (const key of world.paid.keys()) await world.run(forget(world.store(), key));
  expect(await world.run(world.press(form))).toBeUndefined();
  const next = (await world.run(world.open())) as Form;
  expect([next.pressed, referenceOf(next.fields) === referenceOf(form.fields)]).toEqual([false, false]);
  world.isUp = true;
  const pressing = next.press(world.source, PayOut, { patienceMs: -1 });
  await world.run(pressing, (names) => (names[0] === 'query' ? -1 : 0));
  world.failing = 'setItem';
  expect((await world.run(pressing))?.status).toBe('done');
});

it('a screen whose fields are in part undefined goes on with its payment', async () => {
  const world = new World();
  world.isUp = false;
  const first = { amount: '5.00', description: undefined };
  const form = (await world.run(world.open(0, world.store(), first))) as Form;
  expect(await world.run(world.press(form))).toBe('unknown');
  world.isUp = true;
  expect(await world.run(world.press(form))).toBe('done');
  expect(world.paid.size).toBe(1);
});

it('opens over plain http, where a page has no `randomUUID`', async () => {
  const whole = globalThis.crypto;
  vi.stubGlobal('crypto', {
    getRandomValues: (into: Uint32Array<ArrayBuffer>) => whole.getRandomValues(into),
  });
  try {
    const world = new World();
    const form = (await world.run(world.open())) as Form;
    expect(await world.run(world.press(form))).toBe('done');
    expect([...world.paid.keys()]).toEqual([expect.stringMatching(/^(\d+-){3}\d+$/)]);
  } finally {
    vi.unstubAllGlobals();
  }
});

describe('as time passes', () => {
  const DAY_MS = 86_400_000;
  const pass = (days: number) => void vi.setSystemTime(Date.now() + days * DAY_MS);
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
  afterEach(() => void vi.useRealTimers());

  it.each(['shown and dropped', 'let go of'])(
    'a form that was reloaded before its answer is over once its payment was %s',
    async (end) => {
      const world = new World();
      const form = (await world.run(world.open())) as Form;
      const stale = (await world.run(world.open(1))) as Form;
      const asked = new Promise<Fields>((resolve) => {
        // The page ends before the answer.
        const silent = {
          query: (_: unknown, { input }: { input: Fields }) => new Promise(() => resolve(input)),
        };
        void form.press(silent, PayOut, {});
      });
      const { idempotencyKey } = (await world.run(asked)) as Fields;
      if (end === 'let go of') await world.run(forget(world.store(), `${idempotencyKey}`));
      else {
        await world.run(world.showAll());
        pass(0.1);
        const another = { store: world.store(), patienceMs: -1 };
        await world.run(pay(world.source, PayOut, { amount: '1.00' }, another));
      }
      const before = [...world.paid.keys()];
      expect(await world.run(world.press(stale))).toBeUndefined();
      expect([...world.paid.keys()]).toEqual(before);
      const next = (await world.run(world.open(1))) as Form;
      expect([next.pressed, referenceOf(next.fields) === referenceOf(form.fields)]).toEqual([false, false]);
    },
  );

  it('a payment of a form that was pressed weeks after it opened is asked about for as long as any', async () => {
    const world = new World();
    const form = (await world.run(world.open())) as Form;
    pass(27.5);
    const createMoneyOut = { __typename: 'OutcomeUnknown', message: 'Nobody knows.', safeToRetry: false };
    const unclear = {
      async query(...asked: Parameters<typeof world.source.query>) {
        await world.source.query(...asked);
        return { data: { createMoneyOut } };
      },
    };
    const told = await world.run(form.press(unclear, PayOut, { patienceMs: -1 }));
    expect(told?.status).toBe('unknown');
    pass(1.6);
    expect(await world.run(world.press(form))).toBe('done');
    expect(world.paid.size).toBe(1);
  });

  it('a form that opened while the clock was ahead is paid once that is right', async () => {
    const world = new World();
    pass(2);
    const form = (await world.run(world.open())) as Form;
    pass(-2);
    expect(await world.run(world.press(form))).toBe('done');
  });

  it('a form that nobody has pressed for four weeks opens anew, and one that was pressed on the last day does not', async () => {
    for (const isPressed of [false, true]) {
      const world = new World();
      const form = (await world.run(world.open())) as Form;
      pass(27.5);
      if (isPressed) {
        // Its payment is not kept, and so nothing was sent.
        world.failing = 'save';
        await expect(world.run(world.press(form))).rejects.toThrow('save fails.');
        world.failing = undefined;
      }
      pass(1);
      const next = (await world.run(world.open())) as Form;
      expect(referenceOf(next.fields) === referenceOf(form.fields)).toBe(isPressed);
      expect(await world.run(world.press(next))).toBe('done');
      expect(world.paid.size).toBe(1);
    }
  });
});

it('one that an earlier version has kept goes on with its payment, and opens anew without one', async () => {
  const world = new World();
  const fields = { amount: '3.00', externalReference: '42' };
  const store = world.store();
  const intent = {
    idempotencyKey: 'of-before',
    mutation: 'createMoneyOut',
    input: fields,
    createdAt: new Date().toISOString(),
    unanswered: 1,
  };
  world.kept.set(ADDRESS, JSON.stringify({ ...fields, pressed: true }));
  await world.run(Promise.resolve(store.save([intent], [])));
  const form = (await world.run(world.open())) as Form;
  expect([form.pressed, form.fields]).toEqual([true, fields]);
  expect(await world.run(world.press(form))).toBe('done');
  expect([...world.paid.keys()]).toEqual(['of-before']);
  world.kept.set(ADDRESS, JSON.stringify({ ...fields, externalReference: '43', pressed: true }));
  expect(referenceOf(((await world.run(world.open())) as Form).fields)).not.toBe('43');
});

it.each([
  ['two handles of a tab', 0],
  ['two tabs', 1],
] as const)(
  'whatever order the steps come in, one form pays once, and what a pressed screen held: %s',
  async (_, tab) => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = randomOf(seed);
      const world = new World();
      const [one, two] = [
        (await world.run(world.open())) as Form,
        (await world.run(world.open(tab))) as Form,
      ];
      const reference = referenceOf(one.fields);
      const held = new Set<string>();
      const press = (form: Form) => {
        held.add(textOf(form.fields));
        return world.press(form).catch(({ message }) => expect(message).toBe(TAKEN));
      };
      const pause = async () => {
        for (let left = random(9); left > 0; left -= 1) await world.step('person', () => {});
      };
      const typing: Promise<void>[] = [];
      const first = async () => {
        await pause();
        const pressing = press(one);
        typing.push(one.keep({ amount: '50.00' }));
        await pause();
        typing.push(one.keep({ amount: '51.00' }));
        await pressing;
        await press(one);
      };
      const second = async () => {
        await pause();
        typing.push(two.keep({ amount: '9.00' }));
        await pause();
        await press(two);
      };
      // Comes back to the address, also while a press is under way.
      const third = async () => {
        await pause();
        const back = await world.open(tab);
        if (referenceOf(back.fields) === reference) await press(back);
        else expect(world.seen).toContain(reference);
      };
      const elsewhere = async () => {
        await pause();
        await world.showAll();
      };
      const answers = async () => {
        world.isUp = random(2) === 0;
        await pause();
        world.isUp = true;
      };
      const all = Promise.all([first(), second(), third(), elsewhere(), answers()].map(async (each) => each));
      await world.run(all, (names) => random(names.length));
      await world.run(Promise.all(typing));
      await world.run(third());
      for (const form of [one, two]) await world.run(press(form));
      const paid = [...world.paid.values()].filter((fields) => referenceOf(fields) === reference);
      expect(paid.length, `seed ${seed}`).toBe(1);
      expect(held, `seed ${seed}`).toContain(textOf(paid[0] as Fields));
      expect(world.paid.size, `seed ${seed}`).toBe(1);
      if (tab === 0) expect(world.unmarked, `seed ${seed}`).toEqual([]);
    }
  },
);
