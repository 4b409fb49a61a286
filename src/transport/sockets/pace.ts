/** How many are let through in one turn of the event loop: a few milliseconds of work. */
const IN_ONE_TURN = 4;

/**
 * Lets work through in the order in which it comes, a little in each turn of the event loop. Thousands of sockets that come
 * back at once are as much work as the process can do for seconds; whatever else it is asked meanwhile has its turn in
 * between.
 */
export class Pace {
  readonly #waiting: (() => void)[] = [];
  #left = IN_ONE_TURN;
  #isTurning = false;

  /** Undefined where work may begin at once; otherwise resolves when it may. */
  turn(): Promise<void> | undefined {
    this.#beginTurn();
    if (this.#left > 0) {
      this.#left -= 1;
      return undefined;
    }
    return new Promise((begin) => this.#waiting.push(begin));
  }

  #beginTurn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    setImmediate(() => {
      this.#isTurning = false;
      const next = this.#waiting.splice(0, IN_ONE_TURN);
      this.#left = IN_ONE_TURN - next.length;
      if (next.length > 0) this.#beginTurn();
      for (const begin of next) begin();
    });
  }
}
