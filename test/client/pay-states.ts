import { NEVER } from './states.ts';

/**
 * What the store keeps of a payment, and what each event makes of it. The table has to be complete to compile;
 * packages/client/STATES.md shows it, and pay-states.test.ts drives payments by it.
 */
export type Kept =
  /** The store has nothing of it. */
  | 'none'
  /** Its key is kept, and each call that was sent has moved nothing. */
  | 'ready'
  /** One call was sent that may have moved money. */
  | 'one'
  /** More than one call was sent that may have moved money. */
  | 'more'
  /** The gateway says that it is unknown, and safe to repeat. */
  | 'repeatable'
  /** The gateway says that it is unknown, and not safe to repeat. */
  | 'unknown'
  /** `one`, `more`, `repeatable` or `unknown`, 29 days after its key was made. */
  | 'too old'
  /** Done, and not shown yet. */
  | 'done'
  | 'refused'
  /** Done, and shown. */
  | 'over';

export type PayEvent =
  | 'press'
  /** `finish` of the intent as the store last listed it. */
  | 'finish'
  | 'pause over'
  | 'done'
  | 'refused'
  /** A call that was entered behind another is refused, and `payment` says `REFUSED`. (A refund with `INVALID_INPUT`: pay-keys.test.ts.) */
  | 'refused for good'
  | 'unknown'
  | 'unknown, safe to retry'
  /** An error at top level. */
  | 'moved nothing'
  /** The same with a code that stays, such as `FORBIDDEN`. */
  | 'moved nothing, for good'
  | 'no answer'
  | 'acknowledge'
  /** Who still shows the end of the payment before this one, which may have had the same key, acknowledges that. */
  | 'acknowledge the one before'
  | 'forget'
  | 'the app ends'
  | '29 days';

/** The number of calls that may have moved money is less by one: `one`, or still `more`. */
export const ONE_LESS = 'one less';

const allAs = <State extends Kept>(state: State) =>
  ({
    finish: state,
    'pause over': state,
    done: state,
    refused: state,
    'refused for good': state,
    unknown: state,
    'unknown, safe to retry': state,
    'moved nothing': state,
    'moved nothing, for good': state,
    'no answer': state,
    acknowledge: state,
    'acknowledge the one before': state,
    forget: 'none',
    'the app ends': state,
    '29 days': state,
  }) as const;

/** Nobody waits for an answer there. */
const UNASKED = {
  done: NEVER,
  refused: NEVER,
  'refused for good': NEVER,
  unknown: NEVER,
  'unknown, safe to retry': NEVER,
  'moved nothing': NEVER,
  'moved nothing, for good': NEVER,
  'no answer': NEVER,
} as const;

/** What each answer says, whatever other calls may still do. */
const TOLD = {
  done: 'done',
  'refused for good': 'refused',
  unknown: 'unknown',
  'unknown, safe to retry': 'repeatable',
} as const;

export const PAY_TABLE = {
  none: { press: 'one', ...allAs('none') },
  ready: {
    press: 'one',
    ...allAs('ready'),
    finish: 'one',
    'pause over': 'one',
    ...UNASKED,
    '29 days': 'none',
  },
  one: {
    press: 'more',
    ...allAs('one'),
    finish: 'more',
    'pause over': 'more',
    ...TOLD,
    refused: 'refused',
    'moved nothing': 'ready',
    'moved nothing, for good': 'refused',
    '29 days': 'too old',
  },
  more: {
    press: 'more',
    ...allAs('more'),
    ...TOLD,
    refused: ONE_LESS,
    'moved nothing': ONE_LESS,
    'moved nothing, for good': ONE_LESS,
    '29 days': 'too old',
  },
  repeatable: { press: 'repeatable', ...allAs('repeatable'), ...TOLD, '29 days': 'too old' },
  unknown: { press: 'unknown', ...allAs('unknown'), ...TOLD, '29 days': 'too old' },
  // Nothing runs for as long.
  'too old': {
    press: 'too old',
    ...allAs('too old'),
    'pause over': NEVER,
    ...UNASKED,
    'acknowledge the one before': NEVER,
  },
  done: { press: 'done', ...allAs('done'), acknowledge: 'over' },
  refused: { press: 'one', ...allAs('refused'), done: 'done' },
  over: { press: 'one', ...allAs('over') },
} as const satisfies Readonly<
  Record<Kept, Readonly<Record<PayEvent, Kept | typeof NEVER | typeof ONE_LESS>>>
>;

/**
 * The same with `sharedKey`: a press counts one call of another device, which is never answered. So no payment is `ready`, and no call of this
 * device waits for an answer in `one`.
 */
export const SHARED_PAY_TABLE: Readonly<Record<Kept, Readonly<Record<PayEvent, string>>>> = {
  ...PAY_TABLE,
  none: { ...PAY_TABLE.none, press: 'more' },
  one: { ...PAY_TABLE.one, ...UNASKED },
  refused: { ...PAY_TABLE.refused, press: 'more' },
  over: { ...PAY_TABLE.over, press: 'more' },
};

/** What a press sends. */
export const SENDS = {
  none: 'a new key',
  ready: 'the same key',
  one: 'the same key',
  more: 'the same key',
  repeatable: 'the same key',
  unknown: 'nothing; once `payment` knows the end, the same key',
  'too old': 'nothing',
  done: 'nothing',
  refused: 'a new key',
  over: 'a new key',
} as const satisfies Readonly<Record<Kept, string>>;

/** What `finish` sends: never a new key. */
export const FINISH_SENDS = { ...SENDS, none: 'nothing', refused: 'nothing', over: 'nothing' } as const;
