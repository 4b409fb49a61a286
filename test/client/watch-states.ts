import { NEVER } from './states.ts';

/**
 * The states of what `watch` watches, and what each event makes of it. The table has to be complete to compile;
 * packages/client/STATES.md shows it, and watch-states.test.ts drives a watch by it.
 */
export type WatchState =
  | 'connecting'
  | 'live'
  /** Waits before the next try. */
  | 'waiting'
  /** Left, until it is resumed. */
  | 'suspended'
  /** The gateway has completed it: the iteration has ended. */
  | 'final'
  /** The iteration has thrown. */
  | 'refused'
  /** The app has closed it: the iteration has ended. */
  | 'closed';

export type WatchEvent =
  | 'opened'
  | 'state'
  /** One of which the gateway could not give every field. */
  | 'state, with an error'
  | 'completed'
  | 'cut'
  /** Of a gateway up to version 0.2, whose log has lost events. */
  | 'gap'
  | 'refused for a while'
  | 'refused for good'
  | 'pause over'
  | 'suspend'
  | 'resume'
  | 'close';

/** What comes over a connection, where there is none. */
const NONE = {
  opened: NEVER,
  state: NEVER,
  'state, with an error': NEVER,
  completed: NEVER,
  cut: NEVER,
  gap: NEVER,
  'refused for a while': NEVER,
  'refused for good': NEVER,
} as const;
/** What comes over a connection. */
const CONNECTED = {
  opened: 'live',
  state: 'live',
  'state, with an error': 'live',
  completed: 'final',
  cut: 'waiting',
  gap: 'waiting',
  'refused for a while': 'waiting',
  'refused for good': 'refused',
} as const;

export const WATCH_TABLE = {
  connecting: {
    ...CONNECTED,
    'pause over': 'connecting',
    suspend: 'suspended',
    resume: 'connecting',
    close: 'closed',
  },
  live: { ...CONNECTED, 'pause over': 'live', suspend: 'suspended', resume: 'live', close: 'closed' },
  waiting: {
    ...NONE,
    'pause over': 'connecting',
    suspend: 'suspended',
    resume: 'connecting',
    close: 'closed',
  },
  suspended: {
    ...NONE,
    'pause over': 'suspended',
    suspend: 'suspended',
    resume: 'connecting',
    close: 'closed',
  },
  final: { ...NONE, 'pause over': 'final', suspend: 'final', resume: 'final', close: 'final' },
  refused: { ...NONE, 'pause over': 'refused', suspend: 'refused', resume: 'refused', close: 'refused' },
  closed: { ...NONE, 'pause over': 'closed', suspend: 'closed', resume: 'closed', close: 'closed' },
} as const satisfies Readonly<Record<WatchState, Readonly<Record<WatchEvent, WatchState | typeof NEVER>>>>;
