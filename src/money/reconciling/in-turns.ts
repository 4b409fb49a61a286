/** Lets what is more pressing go first. Undefined where work may go on at once. */
export type Turn = () => Promise<void> | undefined;

/** Items that are gone through without asking for a turn again: far less than a millisecond of work. */
const AT_A_TIME = 64;

/** Calls `each` with every item, in their order, and lets others go first again and again meanwhile. */
export async function inTurns<T>(items: Iterable<T>, turn: Turn, each: (item: T) => void): Promise<void> {
  let left = 0;
  for (const item of items) {
    if (left === 0) {
      await turn();
      left = AT_A_TIME;
    }
    left -= 1;
    each(item);
  }
}
