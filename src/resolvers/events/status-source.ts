import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { EventWatch, Watcher } from '../../events/log.ts';
import type { Context } from '../../operation/context.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import type { StatusSource } from './status-watch.ts';

/** A transaction as the caller of an operation reaches it, whichever side of it is the caller's. */
export class TransactionSource implements StatusSource {
  readonly transactionId: string;
  readonly context: Context;

  constructor(transactionId: string, context: Context) {
    this.transactionId = transactionId;
    this.context = context;
  }

  /** A transaction is the same for all who may read it, and each of them has. Of narrowed callers that is asked again before it is shown. */
  get pollKey(): string {
    return `transaction ${this.context.identity.caller.clientId} ${this.transactionId.toLowerCase()}`;
  }

  get pollRequester(): string {
    return this.context.identity.requester.group;
  }

  /** A caller that is narrowed must have been told by the upstream that the transaction is its own. */
  get seesMessages(): boolean {
    return this.context.identity.caller.customerId === undefined;
  }

  watch(topics: readonly string[], watcher: Watcher): Promise<EventWatch> {
    const { reads, identity } = this.context;
    return reads.events.watch(identity.caller.clientId, topics, watcher);
  }

  /** @throws UpstreamError also for an answer that tells no state: it is not taken for a change. */
  async read(): Promise<Transaction | null> {
    this.context.reads.renew();
    const transaction = await this.context.reads.session.transactions.get(this.transactionId);
    const status: unknown = transaction?.transactionStatus;
    if (transaction !== null && typeof status !== 'string') {
      throw new UpstreamError('UPSTREAM_INVALID', 'The service sent a transaction without its status.');
    }
    return transaction;
  }

  sees(transaction: Transaction | null): MaybePromise<boolean> {
    if (this.context.identity.caller.customerId === undefined) return true;
    return transaction === null ? false : this.#owns(transaction);
  }

  async #owns(transaction: Transaction): Promise<boolean> {
    this.context.reads.renew();
    return this.context.reads.session.transactions.owns(transaction);
  }

  renew(): void {
    this.context.reads.renew();
  }

  beforeUpdate(): void {
    this.context.reads.noteTold();
  }

  idle(): void {
    this.context.reads.end();
  }

  readFailed(error: UpstreamError): void {
    this.context.services.logger.warn(
      { err: error },
      'A transaction that is followed could not be read; it is read again later.',
    );
  }
}

/** A receipt as the caller of an operation reaches it: a caller that is narrowed must have paid for it. */
export class ReceiptSource extends TransactionSource {
  override get pollKey(): string {
    const { clientId, customerId = '' } = this.context.identity.caller;
    return `receipt ${clientId} ${customerId} ${this.transactionId.toLowerCase()}`;
  }

  override async read(): Promise<Transaction | null> {
    this.context.reads.renew();
    const { transactions } = this.context.reads.session;
    const isPaid = await transactions.ownsSide(this.transactionId, 'sourceInstrument');
    return isPaid ? transactions.get(this.transactionId) : null;
  }

  /** Those who share readings of it may see the same. */
  override sees(): boolean {
    return true;
  }
}
