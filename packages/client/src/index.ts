export type { EventOf, Feed, FollowOptions, Narrowing, Status } from './feed.ts';
export { follow } from './follow.ts';
export { type Intent, type IntentStore, intentStore, memoryIntents } from './intents.ts';
export { forget, forgetSettled, type Outcome, type PayOptions, pay, unsettled } from './pay.ts';
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
