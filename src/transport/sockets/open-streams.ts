import type { Kept, StreamOwner } from '../../operation/streams.ts';

/** How many WebSockets and SSE streams may be open at once. */
export interface StreamLimits {
  readonly total: number;
  /** From one network address; see client-address.ts. */
  readonly perAddress: number;
  /** Of one identified caller. */
  readonly perCaller: number;
  /** Of all callers of one client. */
  readonly perClient: number;
}

/** The place that one stream takes. */
export interface StreamPlace {
  /** Counts it as this caller's too; else says whose places are taken. */
  claim(owner: StreamOwner): 'claimed' | 'caller-full' | 'client-full';
  /**
   * Counts what an operation keeps; false where its caller, or all callers, would keep too much.
   *
   * @param operation what it can be let go of by.
   */
  keep(operation: object, kept: Kept): boolean;
  /** An operation has ended. */
  letGo(operation: object): void;
  /** Gives the place back, and lets go of all that is kept. Later calls do nothing. */
  leave(): void;
}

export interface OpenStreams {
  /** @param address undefined where it is not known: such streams count in all, and of their callers. */
  enter(address: string | undefined): StreamPlace | 'full' | 'address-full';
}

/** What the operations of one caller may keep, and those of all callers, in bytes (docs/operations.md, "Connections"). */
const KEPT_PER_CALLER = 16 * 1024 * 1024;
const KEPT = 128 * 1024 * 1024;

/** Counts the streams that are open, and what they keep. What it remembers is bounded by their number. */
export const createOpenStreams = (limits: StreamLimits): OpenStreams => new Counts(limits);

/** What one caller keeps. */
interface Keeping {
  bytes: number;
  /** How many of its operations have a document, and what that was counted for. */
  readonly documents: Map<object, { operations: number; readonly bytes: number }>;
}

class Counts implements OpenStreams {
  readonly limits: StreamLimits;
  readonly addresses = new Map<string, number>();
  readonly callers = new Map<string, number>();
  readonly clients = new Map<string, number>();
  readonly #keepings = new Map<string, Keeping>();
  #kept = 0;
  open = 0;

  constructor(limits: StreamLimits) {
    this.limits = limits;
  }

  enter(address: string | undefined): StreamPlace | 'full' | 'address-full' {
    if (this.open >= this.limits.total) return 'full';
    if (address !== undefined && !take(this.addresses, address, this.limits.perAddress))
      return 'address-full';
    this.open += 1;
    return new Place(this, address);
  }

  keep(caller: string, { bytes, document, documentBytes }: Kept): boolean {
    const keeping = this.#keepings.get(caller) ?? { bytes: 0, documents: new Map() };
    const { documents } = keeping;
    const known = documents.get(document);
    const added = bytes + (known === undefined ? documentBytes : 0);
    if (keeping.bytes + added > KEPT_PER_CALLER || this.#kept + added > KEPT) return false;
    this.#keepings.set(caller, keeping);
    if (known === undefined) documents.set(document, { operations: 1, bytes: documentBytes });
    else known.operations += 1;
    keeping.bytes += added;
    this.#kept += added;
    return true;
  }

  letGo(caller: string, { bytes, document }: Kept): void {
    const keeping = this.#keepings.get(caller);
    const known = keeping?.documents.get(document);
    if (keeping === undefined || known === undefined) return;
    known.operations -= 1;
    const isLast = known.operations === 0;
    if (isLast) keeping.documents.delete(document);
    const freed = bytes + (isLast ? known.bytes : 0);
    keeping.bytes -= freed;
    this.#kept -= freed;
    if (keeping.documents.size === 0) this.#keepings.delete(caller);
  }
}

/** A class, and nothing made before it is needed: there are thousands. */
class Place implements StreamPlace {
  readonly #counts: Counts;
  readonly #address: string | undefined;
  #owner: StreamOwner | undefined;
  #kept: Map<object, Kept> | undefined;
  #left = false;

  constructor(counts: Counts, address: string | undefined) {
    this.#counts = counts;
    this.#address = address;
  }

  claim(owner: StreamOwner): 'claimed' | 'caller-full' | 'client-full' {
    const { callers, clients, limits } = this.#counts;
    if (this.#left || this.#owner !== undefined) return 'caller-full';
    if (!take(callers, owner.caller, limits.perCaller)) return 'caller-full';
    if (!take(clients, owner.clientId, limits.perClient)) {
      give(callers, owner.caller);
      return 'client-full';
    }
    this.#owner = owner;
    return 'claimed';
  }

  keep(operation: object, kept: Kept): boolean {
    if (this.#left || this.#owner === undefined) return false;
    if (!this.#counts.keep(this.#owner.caller, kept)) return false;
    this.#kept ??= new Map();
    this.#kept.set(operation, kept);
    return true;
  }

  letGo(operation: object): void {
    const kept = this.#kept?.get(operation);
    if (kept === undefined || this.#owner === undefined) return;
    this.#kept?.delete(operation);
    this.#counts.letGo(this.#owner.caller, kept);
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#counts.open -= 1;
    if (this.#address !== undefined) give(this.#counts.addresses, this.#address);
    if (this.#owner === undefined) return;
    for (const operation of this.#kept?.keys() ?? []) this.letGo(operation);
    give(this.#counts.callers, this.#owner.caller);
    give(this.#counts.clients, this.#owner.clientId);
  }
}

function take(counts: Map<string, number>, key: string, limit: number): boolean {
  const count = counts.get(key) ?? 0;
  if (count >= limit) return false;
  counts.set(key, count + 1);
  return true;
}

function give(counts: Map<string, number>, key: string): void {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
}
