import type { EventOf, Feed, FollowOptions } from './feed.ts';
import { Follower } from './follower.ts';
import type { Source, TypedDocument } from './source.ts';

/** Subscriptions whose events carry a cursor. */
type Followable = Readonly<Record<string, { readonly cursor: string } | string | null | undefined>>;

/**
 * Follows `moneyIn` or `events`: each event of the log once and in order, or a gap where that could not be kept, whatever happens
 * to app, network and gateway. Each event is saved with its cursor before it is handed out. What the gateway is told of again
 * after its log was lost is another event to the new log, and comes again behind the gap.
 *
 * The iteration throws `Refused` where the gateway will never serve the request, and what `store.load` throws. What
 * `store.save` throws is told as `problem`, and saving is tried again: no event is handed out that is not kept.
 */
export function follow<Data extends { [Key in keyof Data]: Followable[string] }, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: FollowOptions<EventOf<Data>, Variables> = {},
): Feed<EventOf<Data>> {
  return new Follower(source, document, options);
}
