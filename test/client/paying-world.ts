import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'vitest';
import {
  type Answer,
  finish,
  type Intent,
  intentStore,
  type KeyValues,
  type Outcome,
  pay,
  type Source,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';

interface Result {
  readonly __typename: string;
}
const MUTATION = typed<
  { readonly pay: Result },
  { readonly input: { readonly idempotencyKey: string; readonly amount: string } }
>(
  'mutation Pay($input: PayInput!) { pay(input: $input) { __typename code message safeToRetry retryUntil } }',
);
export const AMOUNTS = ['1.00', '2.00'];
export const DAY_MS = 86_400_000;

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

  /** Finds out how the payments of unknown outcome have ended: they have moved. */
  learn(): void {
    for (const entry of this.#record.values()) if (entry.state === 'unsafe') entry.state = 'done';
  }

  /** What `Query.payment` tells of a key. */
  look(key: string): { readonly state: string } | null {
    const known = this.#record.get(key);
    if (known === undefined || Date.now() - known.at >= 30 * DAY_MS) return null;
    return { state: { done: 'DONE', refused: 'REFUSED', unsafe: 'UNKNOWN' }[known.state] };
  }

  /** Refuses a call before the key is used, as where one process does not know an instrument yet: the key stays free. */
  refuseUnused(call: Call): Answer<{ pay: Result }> {
    if (this.#record.has(call.key)) return this.carryOut(call, 'refused');
    return {
      data: {
        pay: { __typename: 'NotFoundError', code: 'INSTRUMENT_NOT_FOUND', message: 'None.' } as Result,
      },
    };
  }

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
    type Variables = { idempotencyKey: string; input: { idempotencyKey: string; amount: string } };
    const query = (document: unknown, { idempotencyKey, input }: Variables) =>
      new Promise<Answer<unknown>>((resolve, reject) => {
        if (String(document).startsWith('query PasarelaPayment(')) {
          return resolve({ data: { payment: gateway.look(idempotencyKey) } });
        }
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

/** Two tabs of one app, its storage, and the gateway; or two devices of a person, with a storage each and one key for each draft. */
export class World {
  readonly gateway = new Gateway();
  readonly #values = [new Map<string, string>(), new Map<string, string>()] as const;
  readonly #isShared: boolean;
  /** How many drafts of each amount a backend has made: each gives one key. */
  drafts = 1;
  #draftSince = Date.now();
  /** How each tab leaves what it waits for. */
  readonly #leaving = [new AbortController(), new AbortController()];
  readonly tabs: Tab[] = [];
  readonly ended: Ended[] = [];
  readonly refused: string[] = [];
  /** How often the button of each amount was pressed. */
  readonly #presses = new Map<string, number>();
  /** What each tab has listed, and not yet gone on with. */
  readonly #listed: (readonly Intent[])[] = [[], []];
  /** How often a payment of each amount was seen to be done, and acknowledged. */
  readonly acknowledged = new Map<string, Set<string>>();
  running = 0;
  /** How often a tab has used its storage. */
  #uses = 0;

  constructor(isShared = false) {
    this.#isShared = isShared;
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
    const values = this.#values[this.#isShared && number === 1 ? 1 : 0];
    this.tabs[number] = new Tab(this.gateway, values, () => {
      this.#uses += 1;
    });
  }

  /** Each press has a store of its own, as a component that makes it in place. */
  press(number: number, amount: string): void {
    const { source, storage } = this.tab(number);
    this.#presses.set(amount, (this.#presses.get(amount) ?? 0) + 1);
    const newKey = () => `draft ${this.drafts} of ${amount}`;
    const key = this.#isShared ? { sharedKey: true, newKey, keySince: this.#draftSince } : {};
    const options = { store: intentStore(storage, 'payments'), signal: this.#signalOf(number), ...key };
    this.#await(pay(source, MUTATION, { amount }, options));
  }

  /** The backend closes the draft of each amount, and makes another. */
  redraft(): void {
    this.drafts += 1;
    this.#draftSince = Date.now();
  }

  /** The person leaves the page where payments are under way. */
  leave(number: number): void {
    this.#leaving[number]?.abort();
    this.#leaving[number] = new AbortController();
  }

  #signalOf(number: number): AbortSignal {
    return (this.#leaving[number] ?? expect.unreachable()).signal;
  }

  #await(paying: Promise<Outcome<Result>>): void {
    this.running += 1;
    void paying
      .then(
        (outcome) => {
          this.ended.push({ ...outcome, amount: String(outcome.intent.input['amount']) });
          if (outcome.status === 'refused') this.refused.push(outcome.intent.idempotencyKey);
        },
        () => {},
      )
      .finally(() => {
        this.running -= 1;
      });
  }

  /** A tab starts: it goes on with what nobody has seen the end of. */
  async start(number: number): Promise<void> {
    await this.list(number);
    this.finish(number);
  }

  async list(number: number): Promise<void> {
    this.#listed[number] = await unsettled(intentStore(this.tab(number).storage, 'payments'));
  }

  /** Goes on with what a tab has listed, perhaps long ago. */
  finish(number: number): void {
    const { source, storage } = this.tab(number);
    for (const intent of this.#listed[number] ?? [])
      this.#await(
        finish(source, MUTATION, intent, {
          store: intentStore(storage, 'payments'),
          signal: this.#signalOf(number),
        }),
      );
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
      // Devices share no more than the key of a draft.
      const licensed = this.#isShared ? this.drafts : 1 + (this.acknowledged.get(amount)?.size ?? 0);
      expect(moved.length, `movements of ${amount}`).toBeLessThanOrEqual(licensed);
      expect(moved.length, `movements of ${amount}, and presses`).toBeLessThanOrEqual(
        this.#presses.get(amount) ?? 0,
      );
    }
    const keys = this.gateway.moved.map(({ key }) => key);
    expect(new Set(keys).size, 'keys that have moved money once').toBe(keys.length);
    for (const { key } of this.gateway.moved) expect(this.refused).not.toContain(key);
  }
}
