/** Work under way. */
export interface Flight<T, D = undefined> {
  readonly result: Promise<T>;
  /** When it began, in milliseconds of the clock of its flights. */
  readonly startedAt: number;
  /** What its beginner has noted of it. */
  readonly details: D;
}

export interface FlightOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Work that began longer ago than this, in milliseconds, is not joined: what it saw may be that old. */
  readonly joinedWithinMs: number;
}

const ALWAYS: FlightOptions = { now: () => 0, joinedWithinMs: 0 };

/**
 * Work under way, shared by all in a namespace who ask for the same while it lasts. A namespace is one caller, or all callers that
 * may share. A result is not kept once the work has ended.
 */
export class SingleFlight<T, D = undefined> {
  readonly #namespaces = new Map<string, Map<string, Flight<T, D>>>();
  readonly #options: FlightOptions;

  /** @param options without them, work may be joined for as long as it lasts. */
  constructor(options: FlightOptions = ALWAYS) {
    this.#options = options;
  }

  /** True if nothing is under way. */
  get isIdle(): boolean {
    return this.#namespaces.size === 0;
  }

  /** True if anything of a namespace is under way. */
  isUnderWay(namespace: string): boolean {
    // Even in an empty map a look-up hashes the whole name, which may be a long credential.
    return !this.isIdle && this.#namespaces.has(namespace);
  }

  /** The work under way that may be joined. */
  underWay(namespace: string, key = ''): Flight<T, D> | undefined {
    const flight = this.isUnderWay(namespace) ? this.#namespaces.get(namespace)?.get(key) : undefined;
    const { now, joinedWithinMs } = this.#options;
    return flight !== undefined && now() - flight.startedAt <= joinedWithinMs ? flight : undefined;
  }

  /** Joins the work under way in a namespace, or begins it. All who wait get the same result, or the same error. */
  run(this: SingleFlight<T>, namespace: string, work: () => Promise<T>): Promise<T> {
    return (this.underWay(namespace) ?? this.begin(namespace, '', work(), undefined)).result;
  }

  /** Lets later callers join work that has begun. */
  begin(namespace: string, key: string, result: Promise<T>, details: D): Flight<T, D> {
    const flights = this.#namespaces.get(namespace) ?? new Map<string, Flight<T, D>>();
    this.#namespaces.set(namespace, flights);
    const flight: Flight<T, D> = { result, startedAt: this.#options.now(), details };
    flights.set(key, flight);
    const forgetFlight = (): void => {
      if (flights.get(key) === flight) flights.delete(key);
      if (flights.size === 0 && this.#namespaces.get(namespace) === flights)
        this.#namespaces.delete(namespace);
    };
    result.then(forgetFlight, forgetFlight);
    return flight;
  }

  /** True if work can still be joined: nothing of its namespace has been forgotten since it began, and it has not ended. */
  isCurrent(namespace: string, key: string, flight: Flight<T, D>): boolean {
    return this.#namespaces.get(namespace)?.get(key) === flight;
  }

  /** Makes the work under way in a namespace no longer joinable. */
  forget(namespace: string): void {
    this.#namespaces.delete(namespace);
  }
}
