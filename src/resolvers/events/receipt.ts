import { present } from '../../upstream/call/json.ts';
import type { Schedule } from '../../upstream/session/polls.ts';
import type { DataCep, Transaction } from '../../upstream/transactions.ts';
import { cepOf, isFinal, isNews, mayHaveReceipt, withNews } from '../cep.ts';
import { BadInputError } from '../errors.ts';
import type { CepEvent, Event } from './event.ts';
import type { States } from './status-watch.ts';
import { idTopic, trackingTopic } from './topics.ts';

/** One state of a receipt, as a subscriber is shown it. */
export interface CepUpdate {
  readonly kind: 'SNAPSHOT' | 'CHANGE';
  readonly transactionId: string;
  readonly cep: DataCep;
  /** The message that told of it; undefined where a reading did. */
  readonly event: CepEvent | undefined;
}

const MINUTE = 60_000;
/** Where no webhook comes (docs/upstream-api.md, "Retrieval schedule"). */
const SCHEDULE: Schedule = [
  { until: 4.5 * MINUTE, wait: 1.5 * MINUTE },
  { until: 19.5 * MINUTE, wait: 5 * MINUTE },
  { until: Number.POSITIVE_INFINITY, wait: 15 * MINUTE },
];

/** Messages kept until the transaction has been read. All of them name it, so that there are few. */
const MAX_EARLY = 64;

/**
 * What one subscriber has been shown of a receipt. Readings and messages may come in any order and more than once: each
 * answers with what is new about it, and no documented state steps back within one subscription.
 */
export class Receipt implements States<CepUpdate> {
  readonly schedule = SCHEDULE;
  readonly #transactionId: string;
  #known = false;
  #validationId: string | null = null;
  #trackingKey: string | null = null;
  #shown: DataCep | null = null;
  #early: CepEvent[] | undefined;

  constructor(transactionId: string) {
    this.#transactionId = transactionId;
  }

  get started(): boolean {
    return this.#shown !== null;
  }

  get final(): boolean {
    return this.#shown !== null && isFinal(this.#shown.status);
  }

  get known(): boolean {
    return this.#known;
  }

  /** By the transaction's id, its validation's and its tracking key: the spec does not say which `id` a body has. */
  get topics(): readonly string[] {
    return [
      idTopic('CEP', this.#transactionId),
      ...(this.#validationId === null ? [] : [idTopic('CEP', this.#validationId)]),
      ...(this.#trackingKey === null ? [] : [trackingTopic(this.#trackingKey)]),
    ];
  }

  /** Takes in a message about it. Until something has been shown it is kept. */
  hear(event: Event): readonly CepUpdate[] {
    if (event.type !== 'CEP') return [];
    if (this.#shown === null) {
      this.#early ??= [];
      this.#early.push(event);
      if (this.#early.length > MAX_EARLY) this.#early.shift();
      return [];
    }
    return this.#showNews(event);
  }

  isNews(transaction: Transaction | null): boolean {
    const cep = transaction === null ? null : cepOf(transaction);
    return cep !== null && this.#shown !== null && isNews(cep.status, this.#shown.status);
  }

  /** @throws BadInputError when there is no such transaction, or it has no receipt and no message speaks of one. */
  read(transaction: Transaction | null, lastTry: boolean): readonly CepUpdate[] {
    const cep = transaction === null ? null : cepOf(transaction);
    if (transaction !== null) {
      this.#known = true;
      this.#trackingKey = present(transaction.trackingId) ?? this.#trackingKey;
      this.#validationId = present(cep?.validationId) ?? this.#validationId;
    }
    if (this.#shown !== null) {
      return cep !== null && isNews(cep.status, this.#shown.status) ? [this.#show(cep, undefined)] : [];
    }
    const messages = this.#early ?? [];
    const mayCome = transaction === null || mayHaveReceipt(transaction);
    if (cep === null && messages.length === 0 && (lastTry || !mayCome)) {
      throw new BadInputError(this.#nothingToFollow(transaction, mayCome));
    }
    if (cep === null && !lastTry) return [];
    this.#early = undefined;
    const updates = cep === null ? [] : [this.#show(cep, undefined)];
    return [...updates, ...messages.flatMap((event) => this.#showNews(event))];
  }

  /** For a caller narrowed to a customer, who may read what it was paid, null says only that it has not paid. */
  #nothingToFollow(transaction: Transaction | null, mayCome: boolean): string {
    const id = this.#transactionId;
    if (transaction === null)
      return `There is no transaction ${id} whose receipt you may follow. A caller narrowed to a customer follows receipts of what it has paid.`;
    return mayCome
      ? `The service shows no receipt of transaction ${id}, or not yet: only penny validations have one.`
      : `Transaction ${id} has no receipt: only penny validations have one.`;
  }

  #showNews(event: CepEvent): readonly CepUpdate[] {
    if (this.#shown !== null && !isNews(event.status, this.#shown.status)) return [];
    const { status, beneficiary, processedAt } = event;
    const { name: beneficiaryName, rfc: beneficiaryRfc } = beneficiary;
    return [
      this.#show(withNews(this.#shown, { status, beneficiaryName, beneficiaryRfc, processedAt }), event),
    ];
  }

  #show(cep: DataCep, event: CepEvent | undefined): CepUpdate {
    const kind = this.#shown === null ? 'SNAPSHOT' : 'CHANGE';
    this.#shown = cep;
    return { kind, transactionId: this.#transactionId, cep, event };
  }
}
