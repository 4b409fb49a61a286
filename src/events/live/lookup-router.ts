import type { Entry } from '../entry.ts';
import type { EventTopics, TopicAsker } from '../topics.ts';
import { QUEUE_LIMIT } from './ring.ts';
import { type Member, TopicRouter } from './topic-router.ts';

interface WaitingEntry {
  readonly entry: Entry;
  readonly asked: ReturnType<TopicAsker>;
}

/** Where a member joined while entries waited; it has already seen those. */
interface JoinPoint {
  /** How many entries had been pushed. */
  readonly count: number;
  /** Of the last one. */
  readonly position: string;
}

/**
 * Entries on their way to members that wait for topics which have to be asked for. Every entry goes through, in the log's
 * order: those after one that is being asked about wait for it. One question serves all members.
 */
export class LookupRouter<M extends Member> {
  readonly #topics: EventTopics;
  readonly #ask: TopicAsker;
  readonly #router = new TopicRouter<M>();
  readonly #joined = new Map<M, JoinPoint>();
  /** The first one is being asked about. */
  readonly #waiting: WaitingEntry[] = [];
  #waitingSize = 0;
  /** Counts up when an answer is of no use any more. */
  #round = 0;
  /** How many entries have been pushed. */
  #count = 0;

  constructor(topics: EventTopics, ask: TopicAsker) {
    this.#topics = topics;
    this.#ask = ask;
  }

  /** Adds a member that has seen every entry so far, up to a position. */
  add(member: M, position: string): void {
    this.#router.add(member);
    if (this.#waiting.length > 0) this.#joined.set(member, { count: this.#count, position });
  }

  delete(member: M): void {
    this.#router.delete(member);
    this.#joined.delete(member);
  }

  /** Lets an entry through, once those before it are. */
  push(entry: Entry): void {
    if (this.#router.size === 0) return;
    const asked = this.#ask(entry.event);
    // It is awaited later than it may fail: until then the failure must not count as unhandled.
    asked?.catch(() => undefined);
    this.#waiting.push({ entry, asked });
    this.#waitingSize += entry.size;
    this.#count += 1;
    if (this.#waiting.length > QUEUE_LIMIT.entries || this.#waitingSize > QUEUE_LIMIT.size) this.#fallBack();
    else if (this.#waiting.length === 1) this.#pass();
  }

  /**
   * Has those go on from the log that have no room for entries which are about to come, after the one at a position. Returns
   * them; they begin to read once they `flow`.
   */
  makeRoom(entries: readonly Entry[], position: string): readonly M[] {
    const seen = this.#waiting[0]?.entry.prev ?? position;
    const coming = [...this.#waiting.map(({ entry }) => entry), ...entries];
    const full = [...this.#router.members].filter((member) => member.hasRoomFor?.(coming) === false);
    for (const member of full) {
      const from = this.#seenBy(member, seen);
      this.delete(member);
      member.fallBack?.(from);
    }
    return full;
  }

  /** Ends every member. */
  fail(error: Error): void {
    const members = [...this.#router.members];
    this.#reset();
    for (const member of members) member.fail(error);
  }

  /** Routes entries up to one that is being asked about, and goes on when that is answered. */
  #pass(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined) break;
      const { entry, asked } = first;
      if (asked !== undefined) {
        const round = this.#round;
        asked.then(
          (topics) => {
            if (round !== this.#round) return;
            this.#route(entry, topics);
            this.#pass();
          },
          (error: unknown) => {
            if (round === this.#round) this.fail(error instanceof Error ? error : new Error(String(error)));
          },
        );
        return;
      }
      this.#route(entry, []);
    }
    this.#joined.clear();
  }

  #route(entry: Entry, asked: readonly string[]): void {
    const topics = [...this.#topics.of(entry.event), ...asked];
    const readers = [...this.#router.readersOf(topics)].filter((member) => !this.#hasSeenFirst(member));
    this.#waiting.shift();
    this.#waitingSize -= entry.size;
    for (const member of readers) member.push(entry);
    // All of them have it: two that stand at the same place have been pushed the same.
    for (const member of readers) member.flow?.();
  }

  /** The position up to which a member has been pushed everything; `tail` is the last one that came. */
  placeOf(member: M, tail: string): string {
    return this.#seenBy(member, this.#waiting[0]?.entry.prev ?? tail);
  }

  /** Whether a member came after the first one that waits. */
  #hasSeenFirst(member: M): boolean {
    const joined = this.#joined.get(member);
    return joined !== undefined && joined.count > this.#count - this.#waiting.length;
  }

  /** The position up to which a member has seen everything, where the others have up to another. */
  #seenBy(member: M, others: string): string {
    return (this.#hasSeenFirst(member) ? this.#joined.get(member)?.position : undefined) ?? others;
  }

  /** More waits than a follower's queue may hold: every member goes on from the log by itself. */
  #fallBack(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const behind = [...this.#router.members].map(
      (member) => [member, this.#seenBy(member, first.entry.prev)] as const,
    );
    this.#reset();
    for (const [member, position] of behind) member.fallBack?.(position);
    for (const [member] of behind) member.flow?.();
  }

  #reset(): void {
    this.#round += 1;
    this.#router.clear();
    this.#joined.clear();
    this.#waiting.length = 0;
    this.#waitingSize = 0;
  }
}
