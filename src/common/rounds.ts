import { type AlarmClock, Alarms, CallAlarm } from './alarms.ts';

/** How often each member is called, in milliseconds. */
export const ROUND_MS = 48_000;
/** Members are called in this many parts, one after the other, because thousands at once would hold up everything else. */
const PARTS = 40;

/** Called once in each round. */
export interface RoundMember {
  remind(): void;
}

/** Calls many members regularly, each once in {@link ROUND_MS}, on one timer. Without members it sets no timer. */
export class Rounds {
  readonly #alarms: Alarms;
  readonly #alarm = new CallAlarm(() => this.#ring());
  readonly #parts = Array.from({ length: PARTS }, () => new Set<RoundMember>());
  #size = 0;
  /** The part that is called next. */
  #next = 0;
  /** The part that the latest member has joined. Members join the parts in turn, from the last one backwards. */
  #joins = 0;

  constructor(clock: AlarmClock) {
    this.#alarms = new Alarms(clock);
  }

  add(member: RoundMember): void {
    this.#joins = (this.#joins + PARTS - 1) % PARTS;
    this.#parts[this.#joins]?.add(member);
    this.#size += 1;
    if (this.#size === 1) this.#wait();
  }

  delete(member: RoundMember): void {
    if (!this.#parts.some((part) => part.delete(member))) return;
    this.#size -= 1;
    if (this.#size === 0) this.#alarms.clear(this.#alarm);
  }

  #wait(): void {
    this.#alarms.set(this.#alarm, this.#alarms.now() + ROUND_MS / PARTS);
  }

  #ring(): void {
    const part = this.#parts[this.#next];
    this.#next = (this.#next + 1) % PARTS;
    for (const member of [...(part ?? [])]) member.remind();
    if (this.#size > 0) this.#wait();
  }
}
