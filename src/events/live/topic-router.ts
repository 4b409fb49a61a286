import type { Entry } from '../entry.ts';

/** Whatever a feed hands entries to. */
export interface Member {
  /** The topics that it waits for; undefined for every entry. */
  readonly topics: Iterable<string> | undefined;
  /** Takes a live entry. What it does with it may wait for `flow`. */
  push(entry: Entry): void;
  /** Hands on what it was pushed. Called once an entry has been pushed to all who wait for it. */
  flow?(): void;
  /** Ends it with an error. */
  fail(error: Error): void;
  /** Whether it can take so many entries at once; one without a queue always can. */
  hasRoomFor?(entries: readonly Entry[]): boolean;
  /** It is pushed nothing more, and has to go on from the log by itself, after a position, once it is to `flow`. */
  fallBack?(position: string): void;
}

/** The members that wait for each topic. What an entry costs grows with its topics and its readers, not with all members. */
export class TopicRouter<M extends Member> {
  readonly #everything = new Set<M>();
  /** One member alone, as most topics have, stands without a set of its own. */
  readonly #byTopic = new Map<string, M | Set<M>>();
  readonly #members = new Set<M>();

  get size(): number {
    return this.#members.size;
  }

  get members(): Iterable<M> {
    return this.#members;
  }

  add(member: M): void {
    this.#members.add(member);
    if (member.topics === undefined) this.#everything.add(member);
    else this.addTopics(member, member.topics);
  }

  /** Has a member wait for more topics. */
  addTopics(member: M, topics: Iterable<string>): void {
    for (const topic of topics) {
      const waiting = this.#byTopic.get(topic);
      if (waiting === undefined || waiting === member) this.#byTopic.set(topic, member);
      else if (waiting instanceof Set) waiting.add(member);
      else this.#byTopic.set(topic, new Set([waiting, member]));
    }
  }

  delete(member: M): boolean {
    if (!this.#members.delete(member)) return false;
    this.#everything.delete(member);
    for (const topic of member.topics ?? []) {
      const waiting = this.#byTopic.get(topic);
      if (waiting === member) {
        this.#byTopic.delete(topic);
      } else if (waiting instanceof Set) {
        waiting.delete(member);
        if (waiting.size === 0) this.#byTopic.delete(topic);
      }
    }
    return true;
  }

  clear(): void {
    this.#members.clear();
    this.#everything.clear();
    this.#byTopic.clear();
  }

  /** Who waits for any of the topics, each once. */
  readersOf(topics: readonly string[]): Iterable<M> {
    const readers = new Set<M>(this.#everything);
    for (const topic of topics) {
      const waiting = this.#byTopic.get(topic);
      if (waiting instanceof Set) for (const member of waiting) readers.add(member);
      else if (waiting !== undefined) readers.add(waiting);
    }
    return readers;
  }
}
