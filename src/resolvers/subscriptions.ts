import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import { watchCep } from './cep-watch.ts';
import { decodeEvent, type Event, type MoneyInEvent } from './event.ts';
import { type EventFilter, eventFilter } from './event-page.ts';
import { argumentId } from './ids.ts';
import type { CepUpdate } from './receipt.ts';
import { abortable, selectFrom } from './stream.ts';
import { createVisibility } from './visibility.ts';

interface After {
  readonly after?: string | null | undefined;
}

/** Follows the caller's log. Each event is resolved with a session of its own: what was read before it is older. */
async function follow<T extends Event>(
  after: string | null | undefined,
  context: Context,
  select: (event: Event) => T | undefined,
  matches: (event: Event) => MaybePromise<boolean>,
): Promise<AsyncIterableIterator<T, undefined>> {
  // The log ends the iteration at once on `return()`, which is how a subscriber leaves; this signal is never used.
  const { signal } = new AbortController();
  // A client that comes back over SSE repeats its first request, and says in a header how far it got since.
  const from = context.lastEventId ?? after ?? undefined;
  const { readers } = context;
  const source = await context.events.follow(context.caller.clientId, { after: from, signal, readers });
  return selectFrom(source, (stored) => {
    const selected = select(decodeEvent(stored));
    if (selected === undefined) return undefined;
    const shown = (is: boolean): T | undefined => {
      if (is) context.renewSession();
      return is ? selected : undefined;
    };
    const matching = matches(selected);
    return typeof matching === 'boolean' ? shown(matching) : matching.then(shown);
  });
}

/** Every event of the caller's client, or of the given types. */
export function followEvents(
  args: Pick<EventFilter, 'types'> & After,
  context: Context,
): Promise<AsyncIterableIterator<Event, undefined>> {
  return follow(args.after, context, (event) => event, eventFilter(args, context));
}

/** Credits as they arrive, of one owner or of all. */
export function followMoneyIn(
  args: Pick<EventFilter, 'ownerId'> & After,
  context: Context,
): Promise<AsyncIterableIterator<MoneyInEvent, undefined>> {
  return follow(
    args.after,
    context,
    (event) => (event.type === 'MONEY_IN' ? event : undefined),
    eventFilter(args, context),
  );
}

/**
 * The receipt of one penny validation.
 *
 * @throws BadInputError for an id that is no UUID, at once; for the rest see `watchCep`.
 */
export function followCep(id: string, context: Context): AsyncIterableIterator<CepUpdate, undefined> {
  const transactionId = argumentId('transactionId', 'uuid', id);
  const isVisible = createVisibility(context);
  return abortable(async function* (signal) {
    const events = await context.events.follow(context.caller.clientId, { signal });
    return yield* watchCep({
      transactionId,
      // Others are told from this one by what has been read of it; this one by itself must be the caller's.
      events: selectFrom(events, (stored) => {
        const event = decodeEvent(stored);
        if (event.type !== 'CEP' || event.bodyId?.toLowerCase() !== transactionId.toLowerCase())
          return stored;
        const visible = isVisible(event);
        if (typeof visible === 'boolean') return visible ? stored : undefined;
        return visible.then((is) => (is ? stored : undefined));
      }),
      read: async () => {
        context.renewSession();
        const { transactions } = context.session;
        return (await transactions.sides(transactionId)).source ? transactions.get(transactionId) : null;
      },
      renew: () => context.renewSession(),
      sleep: (ms, until) => context.clock.sleep(ms, until),
      onFailedRead: (error) =>
        context.logger.warn({ err: error }, 'A penny validation could not be read; it is read again later.'),
      signal,
    });
  });
}
