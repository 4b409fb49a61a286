/** Work under way, shared by all who ask for the same meanwhile. What has ended is not kept. */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Promise<T>>();

  /** The work that is under way; undefined when there is none. */
  underWay(key: string): Promise<T> | undefined {
    return this.#flights.get(key);
  }

  /** Joins the work under way, or begins it. All who wait get the same result, or the same error. */
  run(key: string, work: () => Promise<T>): Promise<T> {
    const joined = this.#flights.get(key);
    if (joined !== undefined) return joined;
    const flight = work().finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }
}
