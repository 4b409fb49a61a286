import { Alarm } from '../common/alarms.ts';
import { PushStream, type Sink } from '../common/push-stream.ts';
import type { EventWatch, StoredEvent, Watcher } from '../events/log.ts';
import type { CepPolls, Polled } from '../upstream/cep-polls.ts';
import { UpstreamError } from '../upstream/errors.ts';
import type { Transaction } from '../upstream/transactions.ts';
import { decodeEvent } from './event.ts';
import { type CepUpdate, Receipt } from './receipt.ts';
import { idTopic } from './topics.ts';

/** One caller's access to a receipt. */
export interface CepSource {
  readonly transactionId: string;
  /** The same for callers who may see the same of the client's transactions. */
  readonly visibility: string;
  /** Whether messages may be shown of a transaction that the caller has not read. */
  readonly seesMessages: boolean;
  /** Has a watcher told of the client's events of some topics, from now on. */
  watch(topics: readonly string[], watcher: Watcher): Promise<EventWatch>;
  /** Reads the transaction afresh; null when the upstream does not know it (yet), or it is not the caller's. */
  read(): Promise<Transaction | null>;
  /** Called before a message is shown: what an operation remembers is older than it. Throws when the caller's credential has ended. */
  renew(): void;
  /** Called when nothing is left to do until something is heard or read. */
  idle(): void;
  /** Told of a reading that failed, where another is made later. */
  readFailed(error: UpstreamError): void;
}

/** Waits for a reading that lags behind a transaction just made, in milliseconds. */
const LAGS = [250, 500, 1_000, 2_000, 4_000];

/** Whether the caller may read no more. */
const isRefusal = ({ code }: UpstreamError): boolean => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';

let alone = 0;

class Lag extends Alarm {
  readonly ring: () => void;

  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

/**
 * A receipt's state now, then every change, until it is final. Between two changes it holds a place in the feed, one in
 * the schedule of readings, and nothing else.
 *
 * Ends with BadInputError when there is no such transaction, or it has no receipt; with UpstreamError when the first
 * reading fails, and when the caller's token is no longer accepted; with what ends the events.
 */
export class CepWatch extends PushStream<CepUpdate> implements Watcher, Polled {
  pollKey = '';
  pollDue = 0;
  polls = 0;
  readonly #source: CepSource;
  readonly #polls: CepPolls;
  readonly #receipt: Receipt;
  #sink: Sink<CepUpdate> | undefined;
  #events: EventWatch | undefined;
  #lag: Lag | undefined;
  #lags = 0;
  #isPolled = false;
  #updates: CepUpdate[] | undefined;
  #busy = false;
  #ended = false;
  #error: unknown;

  constructor(source: CepSource, polls: CepPolls) {
    super();
    this.#source = source;
    this.#polls = polls;
    this.#receipt = new Receipt(source.transactionId);
  }

  override connect(sink: Sink<CepUpdate>): void {
    this.#sink = sink;
    this.#begin().catch((error: unknown) => this.#end(error));
  }

  override stop(): void {
    this.#sink = undefined;
    this.#end();
  }

  /** The feed is attached before the first reading, so that nothing falls between. */
  async #begin(): Promise<void> {
    const { transactionId } = this.#source;
    const events = await this.#source.watch([idTopic('CEP', transactionId)], this);
    if (this.#ended) {
      events.stop();
      return;
    }
    this.#events = events;
    await this.#readAlone();
  }

  event(stored: StoredEvent): void {
    const event = decodeEvent(stored);
    if (event.type !== 'CEP' || this.#ended) return;
    if (!this.#receipt.started && !this.#source.seesMessages) return;
    this.#do(() => {
      const updates = this.#receipt.hear(event);
      if (updates.length > 0) this.#source.renew();
      return updates;
    });
    if (this.#isPolled && !this.#ended) this.#polls.putOff(this);
  }

  end(error: Error): void {
    this.#end(error);
  }

  read(): Promise<Transaction | null> {
    return this.#source.read();
  }

  takePoll(transaction: Transaction | null): void {
    this.#do(() => this.#takeReading(transaction));
  }

  pollFailed(error: unknown): boolean {
    const isPassing = error instanceof UpstreamError && !isRefusal(error);
    if (isPassing) this.#source.readFailed(error);
    else this.#end(error);
    this.#pump();
    return isPassing;
  }

  /** A reading that serves nobody else: the first one, which shows that the caller may read the transaction at all. */
  async #readAlone(): Promise<void> {
    let transaction: Transaction | null;
    try {
      transaction = await this.#source.read();
    } catch (error) {
      if (!(error instanceof UpstreamError) || !this.#receipt.started || isRefusal(error)) throw error;
      this.#source.readFailed(error);
      return;
    }
    this.#do(() => this.#takeReading(transaction));
    if (this.#receipt.started || this.#ended) return;
    this.#lag ??= new Lag(() => void this.#readAlone().catch((error: unknown) => this.#end(error)));
    this.#polls.alarms.set(this.#lag, this.#polls.alarms.now() + (LAGS[this.#lags] ?? 0));
    this.#lags += 1;
  }

  #takeReading(transaction: Transaction | null): readonly CepUpdate[] {
    const { known } = this.#receipt;
    const updates = [...this.#receipt.read(transaction, this.#lags >= LAGS.length)];
    if (!known && this.#receipt.known && !this.#receipt.final) updates.push(...this.#learnTopics());
    if (this.#receipt.started && !this.#receipt.final && !this.#isPolled) this.#poll();
    return updates;
  }

  /** Who has read the transaction under a credential of its own shares readings with those who may see the same. */
  #poll(): void {
    const { visibility, transactionId } = this.#source;
    alone += 1;
    this.pollKey = this.#receipt.known ? `${visibility} ${transactionId.toLowerCase()}` : `alone ${alone}`;
    this.#isPolled = true;
    this.#polls.add(this);
  }

  /** The reading has told what else messages may name it by. What came in between is looked up, or read again. */
  #learnTopics(): readonly CepUpdate[] {
    const missed = this.#events?.add(this.#receipt.topics.slice(1));
    if (missed === undefined) {
      this.#readAlone().catch((error: unknown) => this.#end(error));
      return [];
    }
    return missed.flatMap((stored) => {
      const event = decodeEvent(stored);
      return event.type === 'CEP' ? this.#receipt.hear(event) : [];
    });
  }

  #do(work: () => readonly CepUpdate[]): void {
    if (this.#ended) return;
    try {
      const updates = work();
      if (updates.length > 0) this.#updates = [...(this.#updates ?? []), ...updates];
      if (this.#receipt.final) this.#end();
      else this.#pump();
    } catch (error) {
      this.#end(error);
    }
  }

  #pump(): void {
    while (!this.#busy && this.#sink !== undefined) {
      const update = this.#updates?.shift();
      if (update === undefined) break;
      const taken = this.#sink.take(update);
      if (!(taken instanceof Promise)) continue;
      this.#busy = true;
      const done = (): void => {
        this.#busy = false;
        this.#pump();
      };
      taken.then(done, (error: unknown) => {
        this.#updates = undefined;
        this.#end(error);
        done();
      });
    }
    if (this.#busy) return;
    this.#updates = undefined;
    if (!this.#ended) {
      this.#source.idle();
      return;
    }
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.finish(this.#error);
  }

  /** Hears and reads nothing more; what is left to be shown is shown first. */
  #end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#events?.stop();
    if (this.#isPolled) this.#polls.remove(this);
    if (this.#lag !== undefined) this.#polls.alarms.clear(this.#lag);
    this.#pump();
  }
}
