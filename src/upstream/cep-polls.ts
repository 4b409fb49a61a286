import { Alarm, type AlarmClock, Alarms } from '../common/alarms.ts';
import type { Transaction } from './transactions.ts';

/** A receipt that is read again where no message tells of it. */
export interface Polled {
  /** The same for all that one reading may serve. */
  readonly pollKey: string;
  /** When it is to be read next, in milliseconds since the epoch. Kept here, changed by {@link CepPolls}. */
  pollDue: number;
  /** How many readings it has had so far; likewise. */
  polls: number;
  /** Reads under its own credential. */
  read(): Promise<Transaction | null>;
  /** Takes in a reading, which may be another's. */
  takePoll(transaction: Transaction | null): void;
  /** A reading under its own credential has failed. Says whether it may be read again. */
  pollFailed(error: unknown): boolean;
}

const MINUTE = 60_000;
/** Waits before the next reading where no webhook comes (docs/upstream-api.md, "Retrieval schedule"). The last one is repeated. */
const WAITS = [1.5, 1.5, 1.5, 5, 5, 5, 15].map((minutes) => minutes * MINUTE);

const waitOf = ({ polls }: Polled): number => WAITS[Math.min(polls, WAITS.length - 1)] ?? MINUTE;

/** All that one reading serves. The first of them reads next. */
class Group extends Alarm {
  readonly key: string;
  readonly members: Polled[] = [];
  readonly #isDue: (group: Group) => void;

  constructor(key: string, isDue: (group: Group) => void) {
    super();
    this.key = key;
    this.#isDue = isDue;
  }

  override ring(): void {
    this.#isDue(this);
  }

  get earliest(): number {
    return this.members.reduce((due, member) => Math.min(due, member.pollDue), Number.POSITIVE_INFINITY);
  }
}

class Wake extends Alarm {
  readonly ring: () => void;

  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

/**
 * Reads receipts again, on the documented schedule: a lost webhook delays an answer, and never loses it. Those of one
 * transaction share a reading where their callers may see the same. All together keep to a rate; past it those wait, and
 * the one that has waited longest is read first.
 */
export class CepPolls {
  /** What all waits of receipts share. */
  readonly alarms: Alarms;
  readonly #clock: AlarmClock;
  readonly #perSecond: number;
  readonly #groups = new Map<string, Group>();
  /** Those whose time has come, in that order. */
  readonly #due = new Set<Group>();
  readonly #wake = new Wake(() => this.#pump());
  /** Readings that may be made now, and when that was counted. */
  #allowed: number;
  #countedAt: number;

  /** @param perSecond how many readings are made in a second, at most. */
  constructor(clock: AlarmClock, perSecond: number) {
    this.alarms = new Alarms(clock);
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#allowed = perSecond;
    this.#countedAt = clock.now();
  }

  add(polled: Polled): void {
    let group = this.#groups.get(polled.pollKey);
    if (group === undefined) {
      group = new Group(polled.pollKey, (due) => {
        this.#due.add(due);
        this.#pump();
      });
      this.#groups.set(polled.pollKey, group);
    }
    group.members.push(polled);
    this.putOff(polled);
  }

  /** Something has been heard of it: its next reading is a whole wait away again. */
  putOff(polled: Polled): void {
    polled.pollDue = this.#clock.now() + waitOf(polled);
    const group = this.#groups.get(polled.pollKey);
    if (group !== undefined) this.#schedule(group);
  }

  remove(polled: Polled): void {
    const group = this.#groups.get(polled.pollKey);
    const index = group?.members.indexOf(polled) ?? -1;
    if (group === undefined || index < 0) return;
    group.members.splice(index, 1);
    if (group.members.length > 0) return;
    this.#groups.delete(group.key);
    this.#due.delete(group);
    this.alarms.clear(group);
  }

  #schedule(group: Group): void {
    this.#due.delete(group);
    this.alarms.set(group, group.earliest);
  }

  #pump(): void {
    const now = this.#clock.now();
    this.#allowed = Math.min(
      this.#perSecond,
      this.#allowed + (Math.max(0, now - this.#countedAt) / 1_000) * this.#perSecond,
    );
    this.#countedAt = now;
    for (const group of this.#due) {
      if (this.#allowed < 1) {
        this.alarms.set(this.#wake, now + Math.ceil(((1 - this.#allowed) / this.#perSecond) * 1_000));
        return;
      }
      this.#allowed -= 1;
      this.#due.delete(group);
      void this.#read(group);
    }
  }

  /** Reads as each member in turn, so that each credential is asked about now and then. */
  async #read(group: Group): Promise<void> {
    const reader = group.members.shift();
    if (reader === undefined) return;
    group.members.push(reader);
    let transaction: Transaction | null;
    try {
      transaction = await reader.read();
    } catch (error) {
      if (reader.pollFailed(error)) {
        this.#stepOn(group);
        return;
      }
      this.remove(reader);
      if (group.members.length === 0) return;
      // Another's credential may still be good.
      this.#due.add(group);
      this.#pump();
      return;
    }
    for (const member of [...group.members]) member.takePoll(transaction);
    this.#stepOn(group);
  }

  #stepOn(group: Group): void {
    const now = this.#clock.now();
    for (const member of group.members) {
      member.polls += 1;
      member.pollDue = now + waitOf(member);
    }
    if (group.members.length > 0) this.#schedule(group);
  }
}
