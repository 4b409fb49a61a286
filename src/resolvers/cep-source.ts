import type { EventWatch, Watcher } from '../events/log.ts';
import type { Context } from '../operation/context.ts';
import type { UpstreamError } from '../upstream/errors.ts';
import type { Transaction } from '../upstream/transactions.ts';
import type { CepSource } from './cep-watch.ts';

/** A receipt as the caller of an operation reaches it. */
export class CallerCepSource implements CepSource {
  readonly transactionId: string;
  readonly #context: Context;

  constructor(transactionId: string, context: Context) {
    this.transactionId = transactionId;
    this.#context = context;
  }

  get visibility(): string {
    const { clientId, customerId = '' } = this.#context.caller;
    return `${clientId} ${customerId}`;
  }

  /** A caller that is narrowed must have been told by the upstream that the transaction is its own. */
  get seesMessages(): boolean {
    return this.#context.caller.customerId === undefined;
  }

  watch(topics: readonly string[], watcher: Watcher): Promise<EventWatch> {
    const { events, caller } = this.#context;
    return events.watch(caller.clientId, topics, watcher);
  }

  async read(): Promise<Transaction | null> {
    this.#context.renewSession();
    const { transactions } = this.#context.session;
    const { source } = await transactions.sides(this.transactionId);
    return source ? transactions.get(this.transactionId) : null;
  }

  renew(): void {
    this.#context.renewSession();
  }

  idle(): void {
    this.#context.endSession();
  }

  readFailed(error: UpstreamError): void {
    this.#context.logger.warn(
      { err: error },
      'A penny validation could not be read; it is read again later.',
    );
  }
}
