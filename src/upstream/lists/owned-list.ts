import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { ClientList, ListLoader, ListWindow } from './list-loader.ts';
import { Listing } from './whole-list-loader.ts';

/**
 * The part of a client's list that belongs to one customer, which is all that a caller narrowed to it knows of: it is read
 * whole, and looked up in by itself. So what the list holds of others is never asked for, and takes no time to be refused.
 *
 * @param key names the field that holds the owner's id.
 * @param isSeen whether an item is in the caller's scope.
 */
export function createOwnedList<T>(
  loader: ListLoader<T>,
  key: keyof T & string,
  customerId: string,
  isSeen: (item: T) => boolean,
): ClientList<T> {
  let pending: Promise<Listing<T>> | undefined;
  let arrived: Listing<T> | undefined;
  let lookUps = 0;

  const arrive = (): Promise<Listing<T>> => {
    pending ??= Promise.resolve(loader.matching(key, customerId, isSeen)).then((items) => {
      arrived = new Listing(items);
      return arrived;
    });
    return pending;
  };
  const ask = <R>(question: (listing: Listing<T>) => R): MaybePromise<R> => {
    lookUps += 1;
    return arrived === undefined ? arrive().then(question) : question(arrived);
  };

  return {
    begin: arrive,
    window: (offset, limit) =>
      ask(
        ({ items }): ListWindow<T> => ({
          items: items.slice(offset, offset + limit),
          total: items.length,
        }),
      ),
    find: (field, value) => ask((listing) => listing.find(field, value)),
    where: (field, value) => ask((listing) => listing.where(field, value)),
    lookUps: () => lookUps,
  };
}
