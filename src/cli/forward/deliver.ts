import { clock } from '../../common/clock.ts';
import { remark } from '../command.ts';
import { growingPause, rest } from './attempts.ts';
import type { Letter, Letters } from './letters.ts';
import type { ForwardedEvent, Problem, Receiver } from './receiver.ts';

/** How often a long pause checks if an operator has asked for an attempt, in milliseconds. */
const LOOK_EVERY_MS = 500;

/** Delivers events to one receiver, and records the outcomes of the attempts. */
export interface Delivery {
  readonly receiver: Receiver;
  readonly letters: Letters;
  /**
   * Pauses after each refusal of an event, in milliseconds. After the last one the event is given up. Undefined to never give
   * up.
   */
  readonly schedule: readonly number[] | undefined;
}

/**
 * Tries until the receiver takes the event, or until it is given up and put aside.
 *
 * @returns false if the signal ended it
 */
export async function deliver(
  { receiver, letters, schedule }: Delivery,
  event: ForwardedEvent,
  signal: AbortSignal,
): Promise<boolean> {
  // Goes on with the counts of an earlier command that was ended.
  let letter = letters.find(event.cursor);
  for (let failures = 1; !signal.aborted; failures += 1) {
    if (letter !== undefined) letters.begin(event.cursor);
    const problem = await receiver.take(event);
    if (problem === undefined) {
      if (letter !== undefined) letters.taken(event.cursor);
      return true;
    }
    letter = afterFailure(letter, event, problem, failures, schedule);
    letters.put(letter);
    if (letter.isDead) {
      remark(
        `${event.id} was given up after ${letter.attempts} attempts: ${problem.text}. pasarela events forward retry ${receiver.id} posts it again.`,
      );
      return true;
    }
    if (failures === 1) remark(`${event.id} was not taken: ${problem.text}. Trying again.`);
    await untilDue(letter, letters, signal);
  }
  return false;
}

function afterFailure(
  before: Letter | undefined,
  event: ForwardedEvent,
  problem: Problem,
  failures: number,
  schedule: readonly number[] | undefined,
): Letter {
  const now = clock.now();
  const refusals = (before?.refusals ?? 0) + (problem.isAway ? 0 : 1);
  // A receiver that is away has not refused this event. Giving it up would mean giving up all that follow.
  const isDead = !problem.isAway && schedule !== undefined && refusals > schedule.length;
  const scheduled = problem.isAway ? undefined : schedule?.[refusals - 1];
  const wait = Math.max(scheduled ?? growingPause(failures), problem.retryAfterMs ?? 0);
  return {
    event,
    attempts: (before?.attempts ?? 0) + 1,
    refusals,
    firstAt: before?.firstAt ?? now,
    lastAt: now,
    nextAt: isDead ? null : now + wait,
    problem: problem.text,
    isDead,
    isWanted: false,
  };
}

/**
 * Resolves when the next attempt is due, an operator asks for it, or the signal is aborted. A clock of the machine that is set meanwhile
 * neither prolongs nor cuts the pause.
 */
async function untilDue(
  { event, lastAt, nextAt }: Letter,
  letters: Letters,
  signal: AbortSignal,
): Promise<void> {
  const dueAt = clock.monotonic() + (nextAt ?? lastAt) - lastAt;
  for (;;) {
    const left = dueAt - clock.monotonic();
    if (left <= 0 || signal.aborted) return;
    await rest(Math.min(left, LOOK_EVERY_MS), signal);
    if (letters.find(event.cursor)?.isWanted !== false) return;
  }
}

/** Tries each dead letter once that an operator wants tried again. */
export async function deliverAgain({ receiver, letters }: Delivery, signal: AbortSignal): Promise<void> {
  for (const letter of letters.wanted()) {
    if (signal.aborted) return;
    const { event } = letter;
    letters.begin(event.cursor);
    const problem = await receiver.take(event);
    if (problem === undefined) {
      letters.taken(event.cursor);
      remark(`${event.id} was taken at last.`);
    } else {
      const lastAt = clock.now();
      letters.put({ ...letter, attempts: letter.attempts + 1, lastAt, problem: problem.text });
      remark(`${event.id} was not taken again: ${problem.text}.`);
    }
  }
}
