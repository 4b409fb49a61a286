export type { EventOf, Feed, FollowOptions, Narrowing, Status } from './feed.ts';
export { follow } from './follow.ts';
export { forget, forgetSettled, type Standing, standingOf, unsettled } from './intent-states.ts';
export { type Intent, type IntentStore, intentStore, memoryIntents } from './intents.ts';
export { finish, type Outcome, type PayOptions, pay } from './pay.ts';
export type { Presence, Present } from './presence.ts';
export {
  type Answer,
  type Problem,
  Refused,
  type Sink,
  type Source,
  type TypedDocument,
  typed,
} from './source.ts';
export {
  type Gap,
  isGap,
  type KeyValues,
  keyValueStore,
  memoryStore,
  type Saved,
  type Store,
  sharedStore,
} from './stores.ts';
export { type Watch, watch } from './watch.ts';
