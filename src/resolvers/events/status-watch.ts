import { CallAlarm } from '../../common/alarms.ts';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import { EventsGapError } from '../../events/errors.ts';
import type { EventWatch, StoredEvent, Watcher } from '../../events/log.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import type { Polled, Polls, Schedule } from '../../upstream/session/polls.ts';
import type { Transaction } from '../../upstream/transactions.ts';
import { decodeEvent, type Event } from './event.ts';

/** One caller's access to the transaction whose states are followed. */
export interface StatusSource {
  /** The same for callers whom one reading may serve, once each of them has read the transaction. Their states have equal schedules. */
  readonly pollKey: string;
  /** Whose readings they are: those with the same have one share. */
  readonly pollRequester: string;
  /** Whether messages may be shown of a transaction that the caller has not read. */
  readonly seesMessages: boolean;
  /** Has a watcher told of the client's events of some topics, from now on. */
  watch(topics: readonly string[], watcher: Watcher): Promise<EventWatch>;
  /** Reads the transaction afresh; null when the upstream does not know it (yet), or it is not the caller's. */
  read(): Promise<Transaction | null>;
  /** Whether the caller may be shown what another has read. Fails like `read`. */
  sees(transaction: Transaction | null): MaybePromise<boolean>;
  /** Called before a message is shown: what an operation remembers is older than it. Throws when the caller's credential has ended. */
  renew(): void;
  /** Called before anything is shown, heard or read: what its caller asks from then on is read afresh. */
  beforeUpdate(): void;
  /** Called when nothing is left to do until something is heard or read. */
  idle(): void;
  /** Told of a reading that failed, where another is made later. */
  readFailed(error: UpstreamError): void;
}

/** What one subscriber has been shown. Readings and messages may come in any order and more than once. */
export interface States<Update> {
  /** How often the transaction is read where no message comes. */
  readonly schedule: Schedule;
  /** Whether anything has been shown. */
  readonly started: boolean;
  /** Whether what has been shown can no longer change. */
  readonly final: boolean;
  /** Whether the transaction has been read. */
  readonly known: boolean;
  /** The topics of the messages about it, as far as they are known: a reading may tell of more. */
  readonly topics: readonly string[];
  /** Takes in a message that tells a state. Absent where messages only hint that there may be a new one. */
  hear?(event: Event): readonly Update[];
  /** Whether a reading tells something new to somebody who has been shown something. */
  isNews(transaction: Transaction | null): boolean;
  /**
   * Takes in a reading; null when the upstream does not know the transaction.
   *
   * @param lastTry whether a reading that lags behind is waited for no longer.
   * @returns nothing, and `started` stays false, while the reading lags behind: it is to be made again.
   * @throws BadInputError when there is nothing to follow.
   */
  read(transaction: Transaction | null, lastTry: boolean): readonly Update[];
}

/** Waits for a reading that lags behind a transaction just made, in milliseconds. */
const LAGS = [250, 500, 1_000, 2_000, 4_000];
/** Whether the caller may read no more. */
const isRefusal = ({ code }: UpstreamError): boolean => code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';
/** How many watches have had readings of their own so far. */
let alone = 0;

/**
 * The state of something now, then each change that is told or read, until it is final. Between two changes it holds a place
 * in the feed, one in the schedule of readings, and nothing else.
 *
 * Ends with BadInputError when there is nothing to follow; with UpstreamError when the first reading fails, and when the
 * caller's token is no longer accepted; with what ends the events, except a gap: after that it attaches and reads again.
 */
export class StatusWatch<Update> extends PushStream<Update> implements Watcher, Polled {
  pollKey = '';
  readonly #source: StatusSource;
  readonly #states: States<Update>;
  readonly #polls: Polls;
  #sink: Sink<Update> | undefined;
  #events: EventWatch | undefined;
  #gap: EventsGapError | undefined;
  #lag: CallAlarm | undefined;
  #lags = 0;
  #isPolled = false;
  /** Whether a message has hinted at a new state before the first reading had told one. */
  #isHinted = false;
  #updates: Update[] | undefined;
  #busy = false;
  #ended = false;
  #error: unknown;

  constructor(source: StatusSource, states: States<Update>, polls: Polls) {
    super();
    this.#source = source;
    this.#states = states;
    this.#polls = polls;
  }

  get pollRequester(): string {
    return this.#source.pollRequester;
  }

  get schedule(): Schedule {
    return this.#states.schedule;
  }

  override connect(sink: Sink<Update>): void {
    this.#sink = sink;
    this.#begin().catch((error: unknown) => this.#end(error));
  }

  override stop(): void {
    this.#sink = undefined;
    this.#end();
  }

  /** Attaches to the feed before it reads, so that no event is lost between the two. All who share a reading and meet the same gap hint once. */
  async #begin(gap?: EventsGapError): Promise<void> {
    this.#gap = gap;
    const { topics } = this.#states;
    const events = await this.#source.watch(topics, this);
    if (this.#ended || gap !== this.#gap) return events.stop();
    this.#events = events;
    // A reading that began before the gap may have told of more meanwhile.
    events.add(this.#states.topics.filter((topic) => !topics.includes(topic)));
    if (this.#isPolled) this.#polls.hint(this, gap?.head);
    else await this.#readAlone();
  }

  event(stored: StoredEvent): void {
    if (this.#ended) return;
    const states = this.#states;
    if (states.hear === undefined) {
      this.#hint(stored);
      return;
    }
    if (!states.started && !this.#source.seesMessages) return;
    const event = decodeEvent(stored);
    if (event === undefined) return;
    this.#do(() => {
      const updates = states.hear?.(event) ?? [];
      if (updates.length > 0) this.#source.renew();
      return updates;
    });
    if (this.#isPolled && !this.#ended) this.#polls.putOff(this);
  }

  end(error: Error): void {
    if (!(error instanceof EventsGapError)) this.#end(error);
    // A reading tells the state without the missing events. The feed first lets go of all its subscribers.
    else
      void Promise.resolve(error)
        .then((gap) => this.#begin(gap))
        .catch((cause: unknown) => this.#end(cause));
  }

  read(): Promise<Transaction | null> {
    return this.#source.read();
  }

  takePoll(transaction: Transaction | null, isOwn: boolean): boolean {
    const isNews = this.#states.isNews(transaction);
    if (isOwn) this.#do(() => this.#takeReading(transaction));
    else if (isNews) this.#takeAnothers(transaction);
    return isNews;
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
      if (!(error instanceof UpstreamError) || !this.#states.started || isRefusal(error)) throw error;
      this.#source.readFailed(error);
      return;
    }
    this.#do(() => this.#takeReading(transaction));
    if (this.#states.started || this.#ended) return;
    this.#lag ??= new CallAlarm(() => void this.#readAlone().catch((error: unknown) => this.#end(error)));
    this.#polls.alarms.set(this.#lag, this.#polls.alarms.now() + (LAGS[this.#lags] ?? 0));
    this.#lags += 1;
  }

  #takeReading(transaction: Transaction | null): readonly Update[] {
    const states = this.#states;
    const { topics } = states;
    const updates = [...states.read(transaction, this.#lags >= LAGS.length)];
    if (!states.final) updates.push(...this.#learnTopics(topics));
    if (states.started && !states.final && !this.#isPolled) this.#poll();
    return updates;
  }

  /** Takes in what was read under another's credential. */
  #takeAnothers(transaction: Transaction | null): void {
    const take = (): void =>
      this.#do(() => {
        this.#source.renew();
        return this.#takeReading(transaction);
      });
    const sees = this.#source.sees(transaction);
    if (sees === true) take();
    else if (sees !== false) {
      sees.then(
        (seen) => (seen ? take() : undefined),
        (error: unknown) => void this.pollFailed(error),
      );
    }
  }

  /** Who has read the transaction under a credential of its own shares readings with those who may see the same. */
  #poll(): void {
    alone += 1;
    this.pollKey = this.#states.known ? this.#source.pollKey : `alone ${alone}`;
    this.#isPolled = true;
    this.#polls.add(this);
    if (this.#isHinted) this.#polls.hint(this);
  }

  /** A message that is known counts once for all who share a reading. Two may have one id (docs/assumptions.md, "CEP identity"). */
  #hint(stored: StoredEvent | undefined): void {
    if (this.#isPolled) this.#polls.hint(this, stored && `${stored.receivedAt} ${stored.id}`);
    else this.#isHinted = true;
  }

  /** The reading has told what else messages may name it by. What came in between is looked up, or read again. */
  #learnTopics(known: readonly string[]): readonly Update[] {
    const states = this.#states;
    const learned = states.topics.filter((topic) => !known.includes(topic));
    if (learned.length === 0) return [];
    const missed = this.#events?.add(learned);
    if (states.hear === undefined && missed?.length !== 0) this.#hint(missed?.at(-1));
    else if (missed === undefined) this.#readAlone().catch((error: unknown) => this.#end(error));
    return (missed ?? []).flatMap((stored) => {
      const event = decodeEvent(stored);
      return (event && states.hear?.(event)) ?? [];
    });
  }

  #do(work: () => readonly Update[]): void {
    if (this.#ended) return;
    try {
      const updates = work();
      if (updates.length > 0) this.#updates = [...(this.#updates ?? []), ...updates];
      if (this.#states.final) this.#end();
      else this.#pump();
    } catch (error) {
      this.#end(error);
    }
  }

  #pump(): void {
    while (!this.#busy && this.#sink !== undefined) {
      const update = this.#updates?.shift();
      if (update === undefined) break;
      this.#source.beforeUpdate();
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
