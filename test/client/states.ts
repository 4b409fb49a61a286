/**
 * The states of a feed, and what each event makes of it. The table has to be complete to compile; packages/client/STATES.md shows
 * it, and states.test.ts drives a feed by it.
 */
export type State =
  /** Asks for a place in the log: at the first start, and after a gap. */
  | 'placing'
  /** The same, left until it is resumed. */
  | 'placing, left'
  /** Waits before the next try. */
  | 'waiting'
  | 'connecting'
  | 'catching up'
  | 'live'
  /** Left, until it is resumed. */
  | 'suspended'
  /** The iteration has thrown. */
  | 'refused';

export type Event =
  | 'place told'
  | 'place not told'
  | 'opened'
  | 'event'
  | 'bookmark'
  | 'nothing missed'
  | 'cut'
  | 'gap'
  | 'refused'
  | 'pause over'
  | 'suspend'
  | 'resume';

/** What cannot happen there: nobody is asked, or nobody listens. */
export const NEVER = '—';

export const TABLE = {
  placing: {
    'place told': 'connecting',
    'place not told': 'placing',
    opened: NEVER,
    event: NEVER,
    bookmark: NEVER,
    'nothing missed': 'placing',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'placing',
    suspend: 'placing, left',
    resume: 'placing',
  },
  'placing, left': {
    'place told': 'suspended',
    'place not told': 'placing, left',
    opened: NEVER,
    event: NEVER,
    bookmark: NEVER,
    'nothing missed': 'placing, left',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'placing, left',
    suspend: 'placing, left',
    resume: 'placing',
  },
  waiting: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    bookmark: NEVER,
    'nothing missed': 'waiting',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'connecting',
    suspend: 'suspended',
    resume: 'connecting',
  },
  connecting: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: 'catching up',
    event: 'connecting',
    bookmark: NEVER,
    'nothing missed': 'connecting',
    cut: 'waiting',
    gap: 'placing',
    refused: 'refused',
    'pause over': 'connecting',
    suspend: 'suspended',
    resume: 'connecting',
  },
  'catching up': {
    'place told': NEVER,
    'place not told': NEVER,
    opened: 'catching up',
    event: 'catching up',
    bookmark: 'live',
    'nothing missed': 'live',
    cut: 'waiting',
    gap: 'placing',
    refused: 'refused',
    'pause over': 'catching up',
    suspend: 'suspended',
    resume: 'catching up',
  },
  live: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: 'live',
    event: 'live',
    bookmark: 'live',
    'nothing missed': 'live',
    cut: 'waiting',
    gap: 'placing',
    refused: 'refused',
    'pause over': 'live',
    suspend: 'suspended',
    resume: 'live',
  },
  suspended: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    bookmark: NEVER,
    'nothing missed': 'suspended',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'suspended',
    suspend: 'suspended',
    resume: 'connecting',
  },
  refused: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    bookmark: NEVER,
    'nothing missed': 'refused',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'refused',
    suspend: 'refused',
    resume: 'refused',
  },
} as const satisfies Readonly<Record<State, Readonly<Record<Event, State | typeof NEVER>>>>;

/** The table as its page shows it. */
export function printed(): string {
  const states = Object.keys(TABLE) as State[];
  const events = Object.keys(TABLE.placing) as Event[];
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['', ...states]),
    row(['---', ...states.map(() => '---')]),
    ...events.map((event) => row([event, ...states.map((state) => TABLE[state][event])])),
  ].join('\n');
}
