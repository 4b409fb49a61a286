import type { EventOf, Feed, FollowOptions } from './feed.ts';
import { Follower } from './follower.ts';
import type { Source, TypedDocument } from './source.ts';

/** Subscriptions whose events carry a cursor. */
type Followable = Readonly<Record<string, { readonly cursor: string } | string | null | undefined>>;

/**
 * Follows `moneyIn` or `events`: gives each event of the log once and in order, or a gap where events may be missing,
 * whatever happens to app, network and gateway. It saves each event with its cursor before it hands the event out. Of a tab that is
 * behind another the store may not take an event: then the other tab keeps it, or the list has a gap for it.
 *
 * After a gap `save` may be given events that it has had: make what it does unique by the credit's `transactionId`. The feed goes
 * on from the oldest event that the log holds. If the log was lost, an event that the provider delivers again is another event in
 * the new one, and where the provider sends no `id` it has another `id` too.
 *
 * The iteration throws `Refused` if the gateway will never serve the request, or if the stored list was removed meanwhile
 * (`STORE_REMOVED`), and it throws what the first `store.load` throws. Any other error of the store is shown as `problem`, and what failed
 * is tried again: the event waits until then.
 */
export function follow<Data extends { [Key in keyof Data]: Followable[string] }, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  options: FollowOptions<EventOf<Data>, Variables> = {},
): Feed<EventOf<Data>> {
  return new Follower(source, document, options);
}
