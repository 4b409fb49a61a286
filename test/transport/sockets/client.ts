import type { FanOut } from '../../../src/transport/sockets/fan-out.ts';
import type { Subscribed } from '../../../src/transport/sockets/shared-stream.ts';

/** Whose events all of them are sent. */
export const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';

/** Someone with a socket, as graphql-ws drives it: what its iterator gives is sent before more is asked for. */
export class Client {
  readonly #fanOut: FanOut;
  readonly seen: unknown[] = [];
  closed = false;
  completed = false;
  /** The cursors that it was told, each with how much it had been sent by then. */
  readonly marks: (readonly [string, number])[] = [];
  stalled = false;
  expired = false;
  told = 0;
  /** For each message that its socket has not taken in full, who is to be told when it has. */
  readonly #untaken: ((() => void) | undefined)[] = [];
  #left = false;
  #stream: Awaited<ReturnType<FanOut['subscribe']>> | undefined;

  constructor(fanOut: FanOut) {
    this.#fanOut = fanOut;
  }

  async subscribe(
    key: string,
    open: () => Promise<Subscribed>,
    alone?: () => Promise<Subscribed>,
    resumes = alone !== undefined,
  ): Promise<void> {
    const isDrained = () => this.#untaken.length === 0;
    this.#stream = await this.#fanOut.subscribe({
      key,
      outlet: {
        clientId: CLIENT,
        get isDrained() {
          return isDrained();
        },
        holds: () => !this.expired && !this.closed,
        beforeEvent: () => {
          this.told += 1;
        },
        send: (payload, sent) => {
          const text = payload.toString();
          this.seen.push(JSON.parse(text).data?.number ?? text);
          this.#untaken.push(sent);
          if (!this.stalled) this.#readOne();
        },
        mark: (cursor, sent) => {
          this.marks.push([cursor, this.seen.length]);
          if (sent === undefined) return;
          this.#untaken.push(sent);
          if (!this.stalled) this.#readOne();
        },
        close: () => {
          this.closed = true;
        },
      },
      open,
      alone: alone ?? open,
      resumes,
    });
    // Its socket told the server meanwhile that it wants nothing more.
    if (this.#left) await this.leave();
    else void this.#read(this.#stream);
  }

  /** Reads what its socket holds, and from now on all that comes. */
  resume(): void {
    this.stalled = false;
    for (const _sent of this.#untaken) this.#readOne();
  }

  #readOne(): void {
    setImmediate(() => this.#untaken.shift()?.());
  }

  async #read(stream: Awaited<ReturnType<FanOut['subscribe']>>): Promise<void> {
    if (!(Symbol.asyncIterator in stream)) {
      this.seen.push(stream.errors?.[0]?.message);
      return;
    }
    for await (const result of stream) {
      await new Promise((resolve) => setImmediate(resolve));
      this.seen.push(result.data?.['number'] ?? result);
    }
    this.completed = true;
  }

  async leave(): Promise<void> {
    this.#left = true;
    if (this.#stream !== undefined && 'return' in this.#stream) await this.#stream.return?.();
  }
}
