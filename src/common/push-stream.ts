/** Takes the items of a stream. */
export interface Sink<T> {
  /** Takes an item. If it returns a promise, the next item comes once that has settled. */
  take(item: T): void | Promise<void>;
  /**
   * The stream has ended; with an error if it has failed. Called once, and never after `stop`. It may come while the last
   * item is still being taken.
   */
  finish(error?: unknown): void;
  /** The sink has taken all that the log holds, and the next item will be new. Called each time a stream of a log gets that far. */
  rests?(): void;
}

/**
 * A stream that pushes its items, so that one that waits for hours holds neither a generator nor a promise. A transport that
 * can be written to connects a sink. Any other reads the stream as an iterator. Each stream is used in one of the two ways.
 */
export abstract class PushStream<T> implements AsyncIterableIterator<T, undefined> {
  #puller: Puller<T> | undefined;

  /** Begins to push items into a sink. Called once. */
  abstract connect(sink: Sink<T>): void;

  /** Ends the stream at once; its sink hears nothing more. */
  abstract stop(): void;

  /**
   * The position in a log up to which the sink has taken all that the stream shows; undefined unless the stream rests, and for one
   * that reads no log. Streams of one log that show the same, and stand at the same position, can stand in for each other. Not
   * to be shown to readers.
   */
  caughtUpTo(): string | undefined {
    return undefined;
  }

  /** Returns a cursor for the position where the stream rests, for its reader; undefined if `caughtUpTo` is. */
  bookmark(): string | undefined {
    return undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#puller === undefined) {
      this.#puller = new Puller();
      this.connect(this.#puller);
    }
    return this.#puller.pull();
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#puller ??= new Puller();
    this.stop();
    this.#puller.stop();
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** Holds an item until the iterator asks for it, and a last one if the stream ends before that. */
class Puller<T> implements Sink<T> {
  readonly #held: { readonly item: T; readonly taken: () => void }[] = [];
  #waiting: PromiseWithResolvers<IteratorResult<T, undefined>>[] = [];
  #ended = false;
  #error: unknown;

  take(item: T): void | Promise<void> {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting.resolve({ done: false, value: item });
      return undefined;
    }
    return new Promise((taken) => {
      this.#held.push({ item, taken });
    });
  }

  finish(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    for (const waiting of this.#waiting.splice(0)) this.#end(waiting);
  }

  /** Drops the held items, because nobody asks for them any more. */
  stop(): void {
    this.#held.length = 0;
    this.finish();
  }

  pull(): Promise<IteratorResult<T, undefined>> {
    const waiting = Promise.withResolvers<IteratorResult<T, undefined>>();
    const held = this.#held.shift();
    if (held !== undefined) {
      waiting.resolve({ done: false, value: held.item });
      held.taken();
    } else if (this.#ended) {
      this.#end(waiting);
    } else {
      this.#waiting.push(waiting);
    }
    return waiting.promise;
  }

  #end(waiting: PromiseWithResolvers<IteratorResult<T, undefined>>): void {
    const error = this.#error;
    this.#error = undefined;
    if (error === undefined) waiting.resolve({ done: true, value: undefined });
    else waiting.reject(error);
  }
}

/**
 * A stream that gives the items of another one, in another form or with another end. Its position is that of the other one.
 */
export abstract class WrappedStream<In, Out = In> extends PushStream<Out> {
  protected readonly source: PushStream<In>;

  constructor(source: PushStream<In>) {
    super();
    this.source = source;
  }

  override stop(): void {
    this.source.stop();
  }

  override caughtUpTo(): string | undefined {
    return this.source.caughtUpTo();
  }

  override bookmark(): string | undefined {
    return this.source.bookmark();
  }
}

/** Returns what a mapped stream gives for an item; undefined leaves the item out. */
export type Mapping<In, Out> = (item: In) => Out | undefined | Promise<Out | undefined>;

/** A stream of the mapped items of another one. A mapping that throws ends both. */
export class MappedStream<In, Out> extends WrappedStream<In, Out> implements Sink<In> {
  readonly #map: Mapping<In, Out>;
  readonly #failed: ((error: unknown) => Out) | undefined;
  #sink: Sink<Out> | undefined;

  /** @param failed makes a last item of the error that ends the stream; without it the error is passed on. */
  constructor(source: PushStream<In>, map: Mapping<In, Out>, failed?: (error: unknown) => Out) {
    super(source);
    this.#map = map;
    this.#failed = failed;
  }

  override connect(sink: Sink<Out>): void {
    this.#sink = sink;
    this.source.connect(this);
  }

  override stop(): void {
    this.#sink = undefined;
    super.stop();
  }

  rests(): void {
    this.#sink?.rests?.();
  }

  take(item: In): void | Promise<void> {
    try {
      const made = this.#map(item);
      if (made instanceof Promise)
        return made.then((out) => this.#give(out)).catch((error) => this.#fail(error));
      return this.#give(made);
    } catch (error) {
      return this.#fail(error);
    }
  }

  finish(error?: unknown): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    if (error === undefined || this.#failed === undefined) {
      this.#sink = undefined;
      sink.finish(error);
      return;
    }
    const taken = sink.take(this.#failed(error));
    const finish = (): void => {
      this.#sink?.finish();
      this.#sink = undefined;
    };
    if (taken instanceof Promise) taken.then(finish, finish);
    else finish();
  }

  #give(out: Out | undefined): void | Promise<void> {
    return out === undefined ? undefined : this.#sink?.take(out);
  }

  #fail(error: unknown): void {
    this.source.stop();
    this.finish(error);
  }
}
