import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  type Answer,
  finish,
  forget,
  type Intent,
  intentStore,
  type KeyValues,
  type Outcome,
  type PayOptions,
  pay,
  type Source,
  typed,
  unsettled,
} from '../../packages/client/src/index.ts';
import { folder } from '../helpers/packages.ts';
import {
  FINISH_SENDS,
  type Kept,
  ONE_LESS,
  PAY_TABLE,
  type PayEvent,
  SENDS,
  SHARED_PAY_TABLE,
} from './pay-states.ts';
import { NEVER, printed } from './states.ts';

/** When timers are due. No two are due at once: the fake clock would end both pauses in one step. */
const due = new Set<number>();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { setTimeout } = globalThis;
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((callback: () => void, ms = 0) => {
    let at = Date.now() + Math.floor(ms);
    while (due.has(at)) at += 1;
    due.add(at);
    return setTimeout(callback, at - Date.now());
  }) as typeof setTimeout);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

interface Result {
  readonly __typename: string;
}
const MUTATION = typed<{ readonly pay: Result }, { readonly input: { readonly idempotencyKey: string } }>(
  'mutation Pay($input: PayInput!) { pay(input: $input) { __typename code message safeToRetry } }',
);
const DAY_MS = 86_400_000;

interface Call {
  /** The payment: its key, and when it was made. */
  readonly payment: string;
  /** How many calls may have moved money when this one was sent, with it. */
  readonly entered: number;
  readonly press: Press;
  answer(answer: Answer<{ readonly pay: object }>): void;
  lose(): void;
}

/** Of payments with the same key, the moment tells which it is. */
const nameOf = (intent: Intent | undefined): string => `${intent?.idempotencyKey} of ${intent?.createdAt}`;

/** One press of the button. */
interface Press {
  /** The end that the gateway told it of, before it sent the payment again to hear it. */
  found: string | undefined;
}

/** The payment of one input by one app, which is started again at will. What the gateway answers, the test decides. */
class App {
  readonly #values = new Map<string, string>();
  /** Calls of the present life of the app that wait for an answer. */
  calls: Call[] = [];
  running = 0;
  /** What `Query.payment` tells. */
  verdict: string | undefined;
  /** The key that was sent last. */
  key = '';
  /** The payments that were sent. */
  readonly sent = new Set<string>();
  /** The intent of the last key, as it was first found. */
  listed: Intent | undefined;
  told: Outcome<Result> | undefined;
  /** How the payment before that one ended, which a tab still shows. */
  before: Outcome<Result> | undefined;
  readonly #sharedKey: boolean;
  readonly #newKey: PayOptions['newKey'];
  #life = {};
  #uses = 0;

  constructor(sharedKey: boolean, newKey: PayOptions['newKey']) {
    this.#sharedKey = sharedKey;
    this.#newKey = newKey;
  }

  get storage(): KeyValues {
    const life = this.#life;
    const alive = () => {
      this.#uses += 1;
      if (this.#life !== life) throw new Error('The app has ended.');
    };
    return {
      getItem: (key) => {
        alive();
        return this.#values.get(key) ?? null;
      },
      setItem: (key, value) => {
        alive();
        this.#values.set(key, value);
      },
    };
  }

  get store() {
    return intentStore(this.storage, 'payments');
  }

  get intents(): readonly Intent[] {
    return JSON.parse(this.#values.get('payments') ?? '[]');
  }

  /** What the store keeps of the last key. */
  get intent(): Intent | undefined {
    return this.intents.find(({ idempotencyKey }) => idempotencyKey === this.key);
  }

  press(found?: string): void {
    const own = { sharedKey: this.#sharedKey, ...(this.#newKey && { newKey: this.#newKey }) };
    this.#ask(found, (source, options) => pay(source, MUTATION, {}, { ...options, ...own }));
  }

  /** Finishes the payment as this app has last found it, which may be long ago. */
  finish(found?: string): void {
    const { listed } = this;
    if (listed === undefined) throw new Error('Nothing was ever listed.');
    this.#ask(found, (source, options) => finish(source, MUTATION, listed, options));
  }

  #ask(
    found: string | undefined,
    begin: (source: Source, options: PayOptions) => Promise<Outcome<Result>>,
  ): void {
    const life = this.#life;
    const press: Press = { found };
    this.verdict = found;
    this.running += 1;
    void begin(this.#source(press), { store: this.store, patienceMs: DAY_MS, answerMs: DAY_MS })
      .then(
        (outcome) => {
          if (this.#life === life) this.told = outcome;
        },
        () => {},
      )
      .finally(() => {
        if (this.#life === life) this.running -= 1;
      });
  }

  end(): void {
    this.#life = {};
    this.leave();
    this.before = undefined;
  }

  /** Nobody goes on with the payment. A tab may still show how it ended. */
  leave(): void {
    this.before = this.told ?? this.before;
    this.calls = [];
    this.running = 0;
    this.told = undefined;
    const now = Date.now();
    // It puts the clock back as well. The next payment is made later.
    vi.clearAllTimers();
    due.clear();
    vi.setSystemTime(now + 1);
  }

  /** Lets everything happen that waits for nobody. */
  async settle(): Promise<void> {
    for (let quiet = 0, before = this.#uses; quiet < 8; quiet += 1) {
      await turn();
      if (this.#uses !== before) quiet = 0;
      before = this.#uses;
    }
  }

  #source(press: Press): Source {
    type Variables = { readonly input: { readonly idempotencyKey: string } };
    const query = (document: unknown, { input }: Variables) =>
      new Promise<Answer<unknown>>((answer, reject) => {
        if (String(document).startsWith('query PasarelaPayment('))
          return answer({ data: { payment: this.verdict === undefined ? null : { state: this.verdict } } });
        const { idempotencyKey: key } = input;
        this.key = key;
        const entered = this.intent?.unanswered ?? 0;
        const lose = () => reject(new Error('The network is gone.'));
        this.calls.push({ payment: nameOf(this.intent), entered, press, answer, lose });
      });
    // Of the documents that a source takes, this test sends one.
    return { query, subscribe: () => () => {} } as unknown as Source;
  }

  /** The state of the table, as the store shows it. */
  get kept(): Kept {
    const { intent } = this;
    if (intent === undefined) return 'none';
    const { result, unanswered, acknowledgedAt, createdAt } = intent;
    const { __typename: name = '', safeToRetry } = Object(result) as Record<string, unknown>;
    if (name === 'PaySuccess') return acknowledgedAt === undefined ? 'done' : 'over';
    if (name !== '' && name !== 'OutcomeUnknown') return 'refused';
    const isOld = Date.now() - Date.parse(createdAt) >= 29 * DAY_MS;
    if (unanswered === 0 && name === '') return isOld ? 'none' : 'ready';
    if (isOld) return 'too old';
    if (name !== '') return safeToRetry === true ? 'repeatable' : 'unknown';
    return unanswered === 1 ? 'one' : 'more';
  }
}

const REFUSED = { __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS', message: 'Too little.' };
const RUNNING = { __typename: 'ConflictError', code: 'IDEMPOTENCY_IN_PROGRESS', message: 'Running.' };
const unknown = (safeToRetry: boolean) => ({ __typename: 'OutcomeUnknown', message: 'Look.', safeToRetry });
const failed = (code: string) => ({ errors: [{ message: code, extensions: { code } }] });

/** What the gateway answers to a call. */
const ANSWERS: Readonly<Partial<Record<PayEvent, (call: Call, choice: number) => void>>> = {
  done: (call) => call.answer({ data: { pay: { __typename: 'PaySuccess' } } }),
  refused: (call) => call.answer({ data: { pay: REFUSED } }),
  'refused for good': (call) => call.answer({ data: { pay: REFUSED } }),
  unknown: (call) => call.answer({ data: { pay: unknown(false) } }),
  'unknown, safe to retry': (call) => call.answer({ data: { pay: unknown(true) } }),
  'moved nothing': (call) => call.answer(failed('RATE_LIMITED')),
  'moved nothing, for good': (call) => call.answer(failed('FORBIDDEN')),
  'no answer': (call, choice) => (choice % 2 ? call.answer({ data: { pay: RUNNING } }) : call.lose()),
};
/** What a gateway can still say of a payment that it has told the end of. */
const AFTER_THE_END: Readonly<Record<string, readonly PayEvent[]>> = {
  DONE: ['done', 'moved nothing', 'moved nothing, for good', 'no answer'],
  REFUSED: ['refused for good', 'moved nothing', 'moved nothing, for good', 'no answer'],
};
const ALL = Object.keys(PAY_TABLE.none) as PayEvent[];

/** The call that an event can answer, if there is one. */
const callFor = (app: App, event: PayEvent, choice: number): Call | undefined => {
  const fit = app.calls.filter(
    ({ press: { found }, entered }) =>
      (found === undefined || AFTER_THE_END[found]?.includes(event)) &&
      (event !== 'refused for good' || entered > 1),
  );
  return fit[choice % Math.max(1, fit.length)];
};

function isPossible(app: App, event: PayEvent, choice: number): boolean {
  if (ANSWERS[event] !== undefined) return callFor(app, event, choice) !== undefined;
  if (event === 'pause over') return app.running > app.calls.length;
  // What is done is acknowledged once it was told.
  if (event === 'acknowledge')
    return app.told !== undefined && (app.kept !== 'done' || app.told.status === 'done');
  if (event === 'acknowledge the one before') return app.before !== undefined;
  if (event === 'forget') return app.key !== '';
  if (event === 'finish' && app.listed === undefined) return false;
  return (event !== 'press' && event !== 'finish') || app.running < 3;
}

/** What the gateway has learned of a payment that it did not know the end of. */
const foundBy = (app: App, choice: number): string | undefined =>
  app.kept === 'unknown' && choice % 3 ? ['DONE', 'REFUSED'][choice % 2] : undefined;

async function happen(app: App, event: PayEvent, choice: number): Promise<void> {
  const call = callFor(app, event, choice);
  app.verdict = event === 'refused for good' ? 'REFUSED' : undefined;
  if (ANSWERS[event] !== undefined && call !== undefined) {
    app.calls = app.calls.filter((other) => other !== call);
    ANSWERS[event](call, choice);
  } else if (event === 'press') {
    // A person has looked, or seen the end: nobody goes on with the payment before.
    if (SENDS[app.kept] === 'a new key') app.leave();
    app.press(foundBy(app, choice));
  } else if (event === 'finish') app.finish(foundBy(app, choice));
  else if (event === 'pause over') await vi.advanceTimersToNextTimerAsync();
  else if (event === 'acknowledge') await app.told?.acknowledge();
  else if (event === 'acknowledge the one before') await app.before?.acknowledge();
  else if (event === 'forget') await forget(app.store, app.key);
  else app.end();
  if (event === '29 days') {
    // What was due moves with the clock.
    for (const at of [...due]) due.add(at + 29 * DAY_MS);
    vi.setSystemTime(Date.now() + 29 * DAY_MS);
  }
  await app.settle();
}

/** Which payment was sent: nobody pays under two keys, and nothing is sent again that should not be. */
function checkSent(app: App, before: Kept, event: 'press' | 'finish', sent: readonly Call[]): void {
  const isLearned = sent.some(({ press }) => press.found !== undefined);
  const sends = event === 'press' ? SENDS : FINISH_SENDS;
  const expected = before === 'unknown' ? (isLearned ? 'the same key' : 'nothing') : sends[before];
  expect(sent, `calls of ${event} in ${before}`).toHaveLength(expected === 'nothing' ? 0 : 1);
  for (const { payment } of sent)
    expect(app.sent.has(payment), `the payment in ${before}`).toBe(expected === 'the same key');
}

/** What holds in every state. */
async function check(app: App): Promise<void> {
  const open = await unsettled(app.store);
  expect(open.length, 'payments in doubt').toBeLessThanOrEqual(1);
  const isOpen = ['one', 'more', 'repeatable', 'unknown', 'too old', 'done'].includes(app.kept);
  expect(open.map(({ idempotencyKey }) => idempotencyKey)).toEqual(isOpen ? [app.key] : []);
}

/** What to choose among what is possible: by number, or by name. */
const CHOICES = fc.array(fc.tuple(fc.option(fc.constantFrom(...ALL)), fc.nat()), {
  maxLength: 50,
  size: 'max',
});
/** A way to each state, on which a call still waits for its answer where one can. */
const WAYS: Readonly<Record<Kept, readonly PayEvent[]>> = {
  none: ['press', 'press', 'forget'],
  ready: ['press', 'moved nothing'],
  one: ['press'],
  more: ['press', 'press'],
  repeatable: ['press', 'press', 'press', 'unknown, safe to retry'],
  unknown: ['press', 'press', 'press', 'unknown'],
  'too old': ['press', '29 days'],
  done: ['press', 'press', 'done'],
  refused: ['press', 'press', 'press', 'refused for good'],
  over: ['press', 'press', 'done', 'acknowledge'],
};
const SHARED_WAYS = { ...WAYS, ready: WAYS.none, one: ['press', 'moved nothing'], more: ['press'] } as const;
/** Ways to steps that chance does not find in every run. */
const rare = (ways: typeof WAYS): readonly (readonly PayEvent[])[] => [
  // Of two calls one tells the app that it cannot know, and the other that nothing has moved.
  ['press', 'press', 'moved nothing, for good', 'moved nothing', 'acknowledge'],
  // Of three calls one is refused for good, and the others are answered after that.
  ['press', 'press', 'press', 'refused for good', 'refused for good', 'done'],
  // Of two calls one is done, and perhaps shown, before the other is answered.
  ['press', 'press', 'no answer', 'done', 'acknowledge', 'pause over'],
  ...Object.values(ways).flatMap((way) => ALL.map((event) => [...way, event])),
  ...Object.values(ways).map((way): PayEvent[] => [...ways.refused, ...way, 'acknowledge the one before']),
];

const derived = (): string => 'derived';

it.each([
  ['', false, undefined, PAY_TABLE, WAYS, []],
  [', with a derived key', false, derived, PAY_TABLE, WAYS, []],
  [', with a shared key', true, derived, SHARED_PAY_TABLE, SHARED_WAYS, ['ready']],
] as const)(
  'a payment goes from state to state as the table says, and no press pays under two keys%s',
  async (_how, isShared, newKey, table, ways, never) => {
    const visited = new Set<string>();
    await fc.assert(
      fc.asyncProperty(CHOICES, async (choices) => {
        const app = new App(isShared, newKey);
        for (const [named, choice] of choices) {
          const before = app.kept;
          const possible = ALL.filter((event) => isPossible(app, event, choice));
          const others = possible.filter((event) => !visited.has(`${before}, ${event}`));
          const among = others.length > 0 ? others : possible;
          const event =
            named !== null && possible.includes(named) ? named : (among[choice % among.length] ?? 'press');
          const expected = table[before][event];
          expect(expected, `${event} happened in ${before}`).not.toBe(NEVER);
          const { unanswered = 0 } = app.intent ?? {};
          const known = new Set(app.calls);
          await happen(app, event, choice);
          const less = unanswered === 2 ? 'one' : 'more';
          expect(app.kept, `${before}, ${event}`).toBe(expected === ONE_LESS ? less : expected);
          const sent = app.calls.filter((call) => !known.has(call));
          if (event === 'press' || event === 'finish') checkSent(app, before, event, sent);
          else for (const { payment } of sent) expect(app.sent, `${before}, ${event}`).toContain(payment);
          for (const { payment } of sent) app.sent.add(payment);
          if (nameOf(app.listed) !== nameOf(app.intent)) app.listed = app.intent ?? app.listed;
          await check(app);
          visited.add(`${before}, ${event}`);
        }
        app.end();
      }),
      {
        numRuns: 1_000,
        examples: rare(ways).map((way): [[PayEvent, number][]] => [way.map((event) => [event, 0])]),
      },
    );
    const states = Object.entries(table).filter(([state]) => !never.some((other) => other === state));
    const possible = states.flatMap(([state, events]) =>
      Object.entries(events).flatMap(([event, next]) => (next === NEVER ? [] : [`${state}, ${event}`])),
    );
    expect(possible.filter((step) => !visited.has(step))).toEqual([]);
  },
);

it('the page shows the table of payments', async () => {
  expect(await readFile(folder('packages/client/STATES.md'), 'utf8')).toContain(
    printed(PAY_TABLE, { 'a press sends': SENDS, '`finish` sends': FINISH_SENDS }),
  );
});
