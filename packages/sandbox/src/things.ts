/** What a page can be cut from. */
export interface Sliceable<T> {
  readonly length: number;
  slice(start: number, end: number): T[];
}

/** Things of one client that follow from a number each, so that nothing is kept of those that nobody has touched. */
export interface Numbered<T> {
  readonly clientId: string;
  readonly count: number;
  make(number: number): T;
  idOf(number: number): string;
  /** The number of an id; undefined for an id of something else. */
  numberOf(id: string): number | undefined;
}

/** Things by id, and by client in the order of making. */
export class Things<T extends { readonly id: string; readonly clientId: string }> extends Map<string, T> {
  readonly #byClient = new Map<string, T[]>();
  #numbered: Numbered<T> | undefined;
  /** How many things of its client were made before those that are numbered. */
  #before = 0;

  /** Adds things that are made when somebody asks for them. */
  number(numbered: Numbered<T>): void {
    this.#numbered = numbered;
    this.#before = this.made(numbered.clientId).length;
  }

  /** Those of a client that were made one by one. */
  made(clientId: string): readonly T[] {
    return this.#byClient.get(clientId) ?? [];
  }

  /** All of a client. */
  ofClient(clientId: string): Sliceable<T> {
    const made = this.made(clientId);
    const numbered = this.#numbered;
    if (numbered?.clientId !== clientId)
      return { length: made.length, slice: (start, end) => made.slice(start, end) };
    const [before, count] = [this.#before, numbered.count];
    const at = (index: number): T | undefined => {
      if (index < before) return made[index];
      if (index >= before + count) return made[index - count];
      return super.get(numbered.idOf(index - before)) ?? numbered.make(index - before);
    };
    const length = made.length + count;
    return {
      length,
      slice: (start, end) =>
        Array.from({ length: Math.max(0, Math.min(end, length) - start) }, (_, index) =>
          at(start + index),
        ).filter((thing) => thing !== undefined),
    };
  }

  override set(id: string, thing: T): this {
    if (!super.has(id)) {
      const own = this.#byClient.get(thing.clientId);
      if (own === undefined) this.#byClient.set(thing.clientId, [thing]);
      else own.push(thing);
    }
    return super.set(id, thing);
  }

  /** What is got may be changed: from here on it is kept. */
  override get(id: string): T | undefined {
    const kept = super.get(id);
    if (kept !== undefined || this.#numbered === undefined) return kept;
    const number = this.#numbered.numberOf(id);
    if (number === undefined) return undefined;
    const made = this.#numbered.make(number);
    super.set(id, made);
    return made;
  }
}
