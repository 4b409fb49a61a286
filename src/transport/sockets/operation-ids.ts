import { MessageType } from 'graphql-ws';
import { type Taken, taken } from './messages.ts';

/** An operation that has not ended. */
interface Running {
  readonly ended: Promise<void>;
  /** True once its client has completed it. */
  isLeft: boolean;
}

/**
 * The ids of a socket's operations. A client may use an id again as soon as it has completed the operation that had it. graphql-ws may
 * not have ended that one by then: it would send its end to the later one's reader, and drop the later one's answer.
 */
export class OperationIds {
  readonly #running = new Map<string, Running>();
  #left = 0;

  /**
   * Notes a message that graphql-ws has taken.
   *
   * @param worked resolves once nothing is done for the message any more
   */
  note({ type, id = '' }: Taken, worked: Promise<void>): void {
    const running = this.#running.get(id);
    if (type === MessageType.Complete && running?.isLeft === false) {
      running.isLeft = true;
      this.#left += 1;
    } else if (type === MessageType.Subscribe && running === undefined) {
      const ended = worked.then(() => this.#end(id));
      this.#running.set(id, { ended, isLeft: false });
    }
  }

  /** Returns the id of a message that begins an operation, if its client has completed another of this id that has not ended. */
  usedAgain(message: string): string | undefined {
    if (this.#left === 0) return undefined;
    const { type, id = '' } = taken(message);
    return type === MessageType.Subscribe && this.#running.get(id)?.isLeft === true ? id : undefined;
  }

  /** Resolves once the operation of this id has ended. */
  ended(id: string): Promise<void> | undefined {
    return this.#running.get(id)?.ended;
  }

  #end(id: string): void {
    if (this.#running.get(id)?.isLeft === true) this.#left -= 1;
    this.#running.delete(id);
  }
}
