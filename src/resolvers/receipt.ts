import { present } from '../upstream/json.ts';
import type { DataCep, Transaction } from '../upstream/transactions.ts';
import { cepOf, isFinal, isNews, withNews } from './cep.ts';
import { BadInputError } from './errors.ts';
import type { CepEvent } from './event.ts';

/** One state of a receipt, as a subscriber is shown it. */
export interface CepUpdate {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly transactionId: string;
  readonly cep: DataCep;
}

/** Messages kept for matching until the transaction has been read. */
const MAX_EARLY = 1_000;

const sameId = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && one.toLowerCase() === other.toLowerCase();

/**
 * What one subscriber has been shown of a receipt. Readings and messages may come in any order and more than once: each
 * answers with what is new about it, and states never step back.
 */
export class Receipt {
  readonly #transactionId: string;
  #transaction: Transaction | null = null;
  #shown: DataCep | null = null;
  #early: CepEvent[] = [];

  constructor(transactionId: string) {
    this.#transactionId = transactionId;
  }

  /** Whether anything has been shown. */
  get started(): boolean {
    return this.#shown !== null;
  }

  /** Whether what has been shown can no longer change. */
  get final(): boolean {
    return this.#shown !== null && isFinal(this.#shown.status);
  }

  /** Whether a message is, or may turn out to be, about this receipt. */
  concerns(event: CepEvent): boolean {
    return this.#shown === null || this.#isAbout(event);
  }

  /** Takes in a message. Until something has been read it is kept, as what it is about may not be known yet. */
  hear(event: CepEvent): readonly CepUpdate[] {
    if (this.#shown === null) {
      this.#early.push(event);
      if (this.#early.length > MAX_EARLY) this.#early.shift();
      return [];
    }
    return this.#isAbout(event) ? this.#showNews(event) : [];
  }

  /**
   * Takes in a reading; null when the upstream does not know the transaction.
   *
   * @param lastTry whether a reading that lags behind is waited for no longer.
   * @returns nothing, and `started` stays false, while the reading lags behind: it is to be made again.
   * @throws BadInputError when there is no such transaction, or it has no receipt and no message speaks of one.
   */
  read(transaction: Transaction | null, lastTry: boolean): readonly CepUpdate[] {
    this.#transaction = transaction ?? this.#transaction;
    const cep = transaction === null ? null : cepOf(transaction);
    if (this.#shown !== null) {
      return cep !== null && isNews(cep.status, this.#shown.status) ? [this.#show(cep)] : [];
    }
    const messages = this.#early.filter((event) => this.#isAbout(event));
    if (cep === null && messages.length === 0 && (lastTry || transaction !== null)) {
      throw new BadInputError(
        transaction === null
          ? `There is no transaction ${this.#transactionId}.`
          : `Transaction ${this.#transactionId} has no receipt: only penny validations have one.`,
      );
    }
    if (cep === null && !lastTry) return [];
    this.#early = [];
    const updates = cep === null ? [] : [this.#show(cep)];
    return [...updates, ...messages.flatMap((event) => this.#showNews(event))];
  }

  /** By the transaction's id, then its validation's, then its tracking key (docs/assumptions.md, "CEP id"). */
  #isAbout(event: CepEvent): boolean {
    if (sameId(event.bodyId, this.#transactionId)) return true;
    if (this.#transaction === null) return false;
    if (sameId(event.bodyId, present(cepOf(this.#transaction)?.validationId))) return true;
    return event.trackingKey !== null && event.trackingKey === present(this.#transaction.trackingId);
  }

  #showNews(event: CepEvent): readonly CepUpdate[] {
    if (this.#shown !== null && !isNews(event.status, this.#shown.status)) return [];
    return [
      this.#show(
        withNews(this.#shown, {
          status: event.status,
          beneficiaryName: event.beneficiary.name,
          beneficiaryRfc: event.beneficiary.rfc,
          processedAt: event.processedAt,
        }),
      ),
    ];
  }

  #show(cep: DataCep): CepUpdate {
    const kind = this.#shown === null ? 'SNAPSHOT' : 'CHANGE';
    this.#shown = cep;
    return { kind, transactionId: this.#transactionId, cep };
  }
}
