import DataLoader from 'dataloader';
import { clock } from '../common/clock.ts';
import { Lru } from '../common/lru.ts';

/** How many transactions one look-up asks the store for at most: the store does nothing else meanwhile. */
const MOST_AT_ONCE = 100;
/** Clients whose look-ups go together. The look-ups of one that is dropped from these go on. */
const MOST_CLIENTS = 1_000;

/** A transaction, and who asks for its payment. */
export interface AskedTransaction {
  readonly clientId: string;
  readonly customerId: string | undefined;
  readonly transactionId: string;
}

/**
 * Lets the look-ups of a client that begin in one turn of the event loop be made together. The rows of a list ask one by one, as the REST
 * service answers for each. No answer is kept: a payment changes by itself.
 *
 * @param find answers for each, in their order, with what was found or an error
 */
export function together<Found>(
  find: (clientId: string, asked: readonly AskedTransaction[]) => Promise<readonly (Found | Error)[]>,
): (asked: AskedTransaction) => Promise<Found> {
  const loaders = new Lru<DataLoader<AskedTransaction, Found>>(MOST_CLIENTS);
  return (asked) => {
    const { clientId } = asked;
    const loader =
      loaders.get(clientId) ??
      new DataLoader<AskedTransaction, Found>((all) => find(clientId, all), {
        cache: false,
        maxBatchSize: MOST_AT_ONCE,
        batchScheduleFn: (begin) => clock.setImmediate(begin),
      });
    loaders.set(clientId, loader);
    return loader.load(asked);
  };
}
