import type { Context } from '../context.ts';
import { realSleep, watchCep } from './cep-watch.ts';
import { decodeEvent, type Event, type MoneyInEvent } from './event.ts';
import { type EventFilter, eventFilter } from './event-page.ts';
import { argumentId } from './ids.ts';
import type { CepUpdate } from './receipt.ts';
import { abortable, selectFrom } from './stream.ts';

interface After {
  readonly after?: string | null | undefined;
}

/** Follows the caller's log. Each event is resolved with a session of its own: what was read before it is older. */
async function follow<T>(
  after: string | null | undefined,
  context: Context,
  select: (event: Event) => T | undefined,
): Promise<AsyncIterableIterator<T, undefined>> {
  // The log ends the iteration at once on `return()`, which is how a subscriber leaves; this signal is never used.
  const { signal } = new AbortController();
  const source = await context.events.follow(context.caller.clientId, { after: after ?? undefined, signal });
  return selectFrom(source, (stored) => {
    const selected = select(decodeEvent(stored));
    if (selected !== undefined) context.renewSession();
    return selected;
  });
}

/** Every event of the caller's client, or of the given types. */
export function followEvents(
  args: Pick<EventFilter, 'types'> & After,
  context: Context,
): Promise<AsyncIterableIterator<Event, undefined>> {
  const matches = eventFilter(args);
  return follow(args.after, context, (event) => (matches(event) ? event : undefined));
}

/** Credits as they arrive, of one owner or of all. */
export function followMoneyIn(
  args: Pick<EventFilter, 'ownerId'> & After,
  context: Context,
): Promise<AsyncIterableIterator<MoneyInEvent, undefined>> {
  const matches = eventFilter(args);
  return follow(args.after, context, (event) =>
    event.type === 'MONEY_IN' && matches(event) ? event : undefined,
  );
}

/**
 * The receipt of one penny validation.
 *
 * @throws BadInputError for an id that is no UUID, at once; for the rest see `watchCep`.
 */
export function followCep(id: string, context: Context): AsyncIterableIterator<CepUpdate, undefined> {
  const transactionId = argumentId('transactionId', 'uuid', id);
  return abortable(async function* (signal) {
    const events = await context.events.follow(context.caller.clientId, { signal });
    return yield* watchCep({
      transactionId,
      events,
      read: () => {
        context.renewSession();
        return context.session.transactions.get(transactionId);
      },
      renew: () => context.renewSession(),
      sleep: realSleep,
      onFailedRead: (error) =>
        context.logger.warn({ err: error }, 'A penny validation could not be read; it is read again later.'),
      signal,
    });
  });
}
