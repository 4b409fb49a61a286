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
  /** Left, until the app has read the events that wait for it. */
  | 'full'
  /** The same, left by the app as well. */
  | 'full, left'
  /** The iteration has thrown. */
  | 'refused';

export type Event =
  | 'place told'
  | 'place not told'
  | 'opened'
  | 'event'
  /** As many events come as may wait for the app, which reads none. */
  | '256 unread'
  | 'all read'
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
    '256 unread': NEVER,
    'all read': 'placing',
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
    '256 unread': NEVER,
    'all read': 'placing, left',
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
    '256 unread': NEVER,
    'all read': 'waiting',
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
    '256 unread': 'full',
    'all read': 'connecting',
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
    '256 unread': 'full',
    'all read': 'catching up',
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
    '256 unread': 'full',
    'all read': 'live',
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
    '256 unread': NEVER,
    'all read': 'suspended',
    bookmark: NEVER,
    'nothing missed': 'suspended',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'suspended',
    suspend: 'suspended',
    resume: 'connecting',
  },
  full: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    '256 unread': NEVER,
    'all read': 'connecting',
    bookmark: NEVER,
    'nothing missed': 'full',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'full',
    suspend: 'full, left',
    resume: 'full',
  },
  'full, left': {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    '256 unread': NEVER,
    'all read': 'suspended',
    bookmark: NEVER,
    'nothing missed': 'full, left',
    cut: NEVER,
    gap: NEVER,
    refused: NEVER,
    'pause over': 'full, left',
    suspend: 'full, left',
    resume: 'full',
  },
  refused: {
    'place told': NEVER,
    'place not told': NEVER,
    opened: NEVER,
    event: NEVER,
    '256 unread': NEVER,
    'all read': 'refused',
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

type Table = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * A table as its page shows it.
 *
 * @param more rows behind those of the events: by name, what each state has there
 */
export function printed(table: Table, more: Table = {}): string {
  const states = Object.keys(table);
  const events = Object.keys(Object.values(table)[0] ?? {});
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['', ...states]),
    row(['---', ...states.map(() => '---')]),
    ...events.map((event) => row([event, ...states.map((state) => table[state]?.[event] ?? '')])),
    ...Object.entries(more).map(([name, cells]) => row([name, ...states.map((state) => cells[state] ?? '')])),
  ].join('\n');
}
