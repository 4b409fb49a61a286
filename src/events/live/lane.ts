import type { Entry } from '../entry.ts';
import type { EventTopics } from '../topics.ts';
import { QUEUE_LIMIT } from './ring.ts';
import { type Member, Router } from './router.ts';

interface Waiting {
  readonly entry: Entry;
  readonly asked: ReturnType<EventTopics['askedFor']>;
}

/**
 * Entries on their way to members that wait for topics which have to be asked for. Every entry goes through, in the log's
 * order: those after one that is being asked about wait for it. One question serves all members.
 */
export class Lane<M extends Member> {
  readonly #clientId: string;
  readonly #topics: EventTopics;
  readonly #router = new Router<M>();
  /** The first one is being asked about. */
  readonly #waiting: Waiting[] = [];
  #waitingSize = 0;
  /** Counts up when an answer is of no use any more. */
  #round = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(clientId: string, topics: EventTopics) {
    this.#clientId = clientId;
    this.#topics = topics;
  }

  /** Resolves once every entry so far has gone through; undefined where that is so already. */
  get idle(): Promise<void> | undefined {
    return this.#idle?.promise;
  }

  /** Adds a member that has seen every entry so far. The lane must be idle. */
  add(member: M): void {
    this.#router.add(member);
  }

  delete(member: M): void {
    this.#router.delete(member);
  }

  /** Lets an entry through, once those before it are. */
  push(entry: Entry): void {
    if (this.#router.size === 0 && this.#idle === undefined) return;
    const asked = this.#topics.askedFor(this.#clientId, entry.event);
    // It is awaited later than it may fail: until then the failure must not count as unhandled.
    if (asked instanceof Promise) asked.catch(() => undefined);
    this.#waiting.push({ entry, asked });
    this.#waitingSize += entry.size;
    if (this.#waiting.length > QUEUE_LIMIT.entries || this.#waitingSize > QUEUE_LIMIT.size) this.#fallBack();
    else if (this.#idle === undefined) this.#pass();
  }

  /** Has those go on from the log that have no room for entries which are about to come, after the one at a position. */
  makeRoom(entries: readonly Entry[], position: string): void {
    const seen = this.#waiting[0]?.entry.prev ?? position;
    const coming = [...this.#waiting.map(({ entry }) => entry), ...entries];
    for (const member of [...this.#router.members]) {
      if (member.hasRoomFor?.(coming) !== false) continue;
      this.#router.delete(member);
      member.fallBack?.(seen);
    }
  }

  /** Ends every member. */
  fail(error: Error): void {
    const members = [...this.#router.members];
    this.#reset();
    for (const member of members) member.fail(error);
  }

  #pass(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined) break;
      if (first.asked instanceof Promise) {
        this.#idle ??= Promise.withResolvers();
        const round = this.#round;
        first.asked.then(
          (topics) => {
            if (round !== this.#round) return;
            this.#route(first.entry, topics);
            this.#pass();
          },
          (error: unknown) => {
            if (round === this.#round) this.fail(error instanceof Error ? error : new Error(String(error)));
          },
        );
        return;
      }
      this.#route(first.entry, first.asked ?? []);
    }
    this.#settle();
  }

  #route(entry: Entry, asked: readonly string[]): void {
    this.#waiting.shift();
    this.#waitingSize -= entry.size;
    const topics = [...this.#topics.of(entry.event), ...asked];
    for (const member of this.#router.readersOf(topics)) member.push(entry);
  }

  /** More waits than a follower's queue may hold: every member goes on from the log by itself. */
  #fallBack(): void {
    const [first] = this.#waiting;
    const members = [...this.#router.members];
    this.#reset();
    if (first !== undefined) for (const member of members) member.fallBack?.(first.entry.prev);
  }

  #reset(): void {
    this.#round += 1;
    this.#router.clear();
    this.#waiting.length = 0;
    this.#waitingSize = 0;
    this.#settle();
  }

  #settle(): void {
    this.#idle?.resolve();
    this.#idle = undefined;
  }
}
