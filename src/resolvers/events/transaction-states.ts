import { present } from '../../upstream/call/json.ts';
import type { Schedule } from '../../upstream/session/polls.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import { cepOf } from '../cep.ts';
import { BadInputError } from '../errors.ts';
import { isSettled } from '../transaction.ts';
import type { States } from './status-watch.ts';
import { idTopic, trackingTopic } from './topics.ts';

/** One state of a transaction, as a subscriber is shown it. */
export interface TransactionUpdate {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly transaction: Transaction;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/**
 * Where no webhook comes. Most payments settle within a minute. In the first half hour these are 34 readings; the first one
 * and those that hints may cause make 45.
 */
const SCHEDULE: Schedule = [
  { until: 4 * SECOND, wait: 2 * SECOND },
  { until: 10 * SECOND, wait: 3 * SECOND },
  { until: 60 * SECOND, wait: 4 * SECOND },
  { until: 2 * MINUTE, wait: 20 * SECOND },
  { until: 5 * MINUTE, wait: 45 * SECOND },
  { until: 10 * MINUTE, wait: 90 * SECOND },
  { until: 30 * MINUTE, wait: 3 * MINUTE },
  { until: 180 * MINUTE, wait: 5 * MINUTE },
  { until: Number.POSITIVE_INFINITY, wait: 15 * MINUTE },
];

/**
 * What one subscriber has been shown of a transaction. Readings alone tell a state: the spec shows no message that would. Within
 * one subscription no state goes back to INITIALIZED. One that is not documented is shown, and is never final. Nobody knows its place
 * among the others, but that it comes after INITIALIZED, so that the state before it may come again.
 */
export class TransactionStates implements States<TransactionUpdate> {
  readonly schedule = SCHEDULE;
  readonly #transactionId: string;
  #shown: Transaction | null = null;
  /** As it was read last: a receipt may be there later than the transaction. */
  #read: Transaction | null = null;

  constructor(transactionId: string) {
    this.#transactionId = transactionId;
  }

  get started(): boolean {
    return this.#shown !== null;
  }

  get final(): boolean {
    return this.#shown !== null && isSettled(this.#shown);
  }

  get known(): boolean {
    return this.#shown !== null;
  }

  /** A receipt's messages may name its penny validation in other ways (docs/assumptions.md, "CEP id"). */
  get topics(): readonly string[] {
    const cep = this.#read === null ? null : cepOf(this.#read);
    const validationId = present(cep?.validationId);
    const trackingKey = cep === null ? null : present(this.#read?.trackingId);
    return [
      idTopic('STATUS_UPDATE', this.#transactionId),
      idTopic('MONEY_IN', this.#transactionId),
      idTopic('CEP', this.#transactionId),
      ...(validationId === null ? [] : [idTopic('CEP', validationId)]),
      ...(trackingKey === null ? [] : [trackingTopic(trackingKey)]),
    ];
  }

  isNews(transaction: Transaction | null): boolean {
    if (transaction === null || this.#shown === null || this.final) return false;
    const { transactionStatus: next } = transaction;
    // No other documented state may come before the one that is shown: the one that follows LIQUIDATED is final.
    return next !== this.#shown.transactionStatus && next !== 'INITIALIZED';
  }

  /** @throws BadInputError when there is no such transaction. */
  read(transaction: Transaction | null, lastTry: boolean): readonly TransactionUpdate[] {
    this.#read = transaction ?? this.#read;
    if (this.#shown !== null) {
      return transaction !== null && this.isNews(transaction) ? [this.#show(transaction, 'CHANGE')] : [];
    }
    if (transaction !== null) return [this.#show(transaction, 'SNAPSHOT')];
    if (lastTry) throw new BadInputError(`There is no transaction ${this.#transactionId}.`);
    return [];
  }

  #show(transaction: Transaction, kind: TransactionUpdate['kind']): TransactionUpdate {
    this.#shown = transaction;
    return { kind, transaction };
  }
}
