import { SHARE_OF_GROUP } from '../../common/fair-queue.ts';
import { clientGroup } from '../../common/party.ts';
import type { LimitLog } from '../../observability/limit-log.ts';
import { type KeptBytes, LIMIT_OF, type StreamHolder, type StreamRefusal } from '../../operation/streams.ts';

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

type KeptRefusal = Extract<StreamRefusal, 'kept-full' | 'group-kept-full' | 'all-kept-full'>;

/** The seat that one stream takes. */
export interface StreamSeat {
  /** Counts the stream as this caller's too. If no seat is left, says whether the caller or its client has none. */
  claim(holder: StreamHolder): 'claimed' | 'caller-full' | 'client-full';
  /**
   * Counts the bytes that an operation keeps. If they are too many, says whether those of its caller are, those of its
   * group, or those of all.
   *
   * @param operation names the operation to `letGo`.
   */
  keep(operation: object, kept: KeptBytes): KeptRefusal | undefined;
  /** An operation has ended. */
  letGo(operation: object): void;
  /** Gives the seat back, and counts down all that the stream keeps. Later calls do nothing. */
  leave(): void;
}

/** What a stream comes over: a socket takes one seat for all its operations, over SSE each stream takes one. */
type StreamKind = 'websocket' | 'sse';

export interface OpenStreams {
  /** How many seats are taken. */
  readonly taken: Readonly<Record<StreamKind, number>>;
  /** @param address undefined where it is not known: such a stream counts in all and for its caller, but for no address. */
  enter(address: string | undefined, kind: StreamKind): StreamSeat | 'full' | 'address-full';
}

/** Bytes that the operations of one caller may keep, of one group, and of all callers (docs/proxies.md). */
const KEPT_PER_CALLER = 16 * 1024 * 1024;
const KEPT = 128 * 1024 * 1024;
const KEPT_PER_GROUP = KEPT * SHARE_OF_GROUP;

/**
 * Counts the open streams, and the bytes that they keep. Its own memory is bounded by the number of open streams.
 *
 * @param tell is told of each refusal of an identified caller, and of which client it is.
 */
export const createOpenStreams = (limits: StreamLimits, tell: LimitLog = () => undefined): OpenStreams =>
  new Counts(limits, tell);

/** The bytes that operations keep together: those of one caller, of one group, or of all. */
class Keeping {
  readonly #limit: number;
  /** By document: how many operations have it, and the bytes that were counted for it. */
  readonly #documents = new Map<object, { operations: number; readonly bytes: number }>();
  #bytes = 0;

  /** @param limit in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get isEmpty(): boolean {
    return this.#documents.size === 0;
  }

  fits({ bytes, document, documentBytes }: KeptBytes): boolean {
    return this.#bytes + bytes + (this.#documents.has(document) ? 0 : documentBytes) <= this.#limit;
  }

  add({ bytes, document, documentBytes }: KeptBytes): void {
    const known = this.#documents.get(document);
    this.#bytes += bytes + (known === undefined ? documentBytes : 0);
    if (known === undefined) this.#documents.set(document, { operations: 1, bytes: documentBytes });
    else known.operations += 1;
  }

  remove({ bytes, document }: KeptBytes): void {
    const known = this.#documents.get(document);
    if (known === undefined) return;
    known.operations -= 1;
    this.#bytes -= bytes;
    if (known.operations > 0) return;
    this.#documents.delete(document);
    this.#bytes -= known.bytes;
  }
}

class Counts implements OpenStreams {
  readonly limits: StreamLimits;
  readonly #tell: LimitLog;
  readonly addresses = new Map<string, number>();
  readonly callers = new Map<string, number>();
  readonly clients = new Map<string, number>();
  readonly #keepings = new Map<string, Keeping>();
  readonly #groups = new Map<string, Keeping>();
  /** A document that several callers have in common counts once. */
  readonly #all = new Keeping(KEPT);
  readonly taken: Record<StreamKind, number> = { websocket: 0, sse: 0 };

  constructor(limits: StreamLimits, tell: LimitLog) {
    this.limits = limits;
    this.#tell = tell;
  }

  /** Returns the refusal, and tells whose it is. */
  refused<Refusal extends StreamRefusal>(refusal: Refusal, { clientId }: StreamHolder): Refusal {
    this.#tell(LIMIT_OF[refusal], clientGroup(clientId));
    return refusal;
  }

  enter(address: string | undefined, kind: StreamKind): StreamSeat | 'full' | 'address-full' {
    if (this.taken.websocket + this.taken.sse >= this.limits.total) return 'full';
    if (address !== undefined && !take(this.addresses, address, this.limits.perAddress))
      return 'address-full';
    this.taken[kind] += 1;
    return new Seat(this, address, kind);
  }

  keep(holder: StreamHolder, kept: KeptBytes): KeptRefusal | undefined {
    const { caller, group } = holder;
    const own = this.#keepings.get(caller) ?? new Keeping(KEPT_PER_CALLER);
    if (!own.fits(kept)) return this.refused('kept-full', holder);
    const together =
      group === undefined ? undefined : (this.#groups.get(group) ?? new Keeping(KEPT_PER_GROUP));
    if (together?.fits(kept) === false) return this.refused('group-kept-full', holder);
    if (!this.#all.fits(kept)) return this.refused('all-kept-full', holder);
    this.#keepings.set(caller, own);
    if (group !== undefined && together !== undefined) this.#groups.set(group, together);
    for (const keeping of [own, together, this.#all]) keeping?.add(kept);
    return undefined;
  }

  letGo({ caller, group }: StreamHolder, kept: KeptBytes): void {
    remove(this.#keepings, caller, kept);
    if (group !== undefined) remove(this.#groups, group, kept);
    this.#all.remove(kept);
  }
}

function remove(keepings: Map<string, Keeping>, key: string, kept: KeptBytes): void {
  const keeping = keepings.get(key);
  keeping?.remove(kept);
  if (keeping?.isEmpty) keepings.delete(key);
}

/** An operation, and the bytes that it keeps. */
interface KeptBy {
  readonly operation: object;
  readonly kept: KeptBytes;
}

/** A class that makes nothing before it is needed, because there are thousands. */
class Seat implements StreamSeat {
  readonly #counts: Counts;
  readonly #address: string | undefined;
  readonly #kind: StreamKind;
  #holder: StreamHolder | undefined;
  /** A list, of twenty at most. For the one operation that a phone has, a map would take four times the memory. */
  #kept: KeptBy[] | undefined;
  #left = false;

  constructor(counts: Counts, address: string | undefined, kind: StreamKind) {
    this.#counts = counts;
    this.#address = address;
    this.#kind = kind;
  }

  claim(holder: StreamHolder): 'claimed' | 'caller-full' | 'client-full' {
    const { callers, clients, limits } = this.#counts;
    if (this.#left || this.#holder !== undefined) return 'caller-full';
    if (!take(callers, holder.caller, limits.perCaller)) return this.#counts.refused('caller-full', holder);
    if (!take(clients, holder.clientId, limits.perClient)) {
      give(callers, holder.caller);
      return this.#counts.refused('client-full', holder);
    }
    this.#holder = holder;
    return 'claimed';
  }

  keep(operation: object, kept: KeptBytes): KeptRefusal | undefined {
    if (this.#left || this.#holder === undefined) return 'kept-full';
    const refusal = this.#counts.keep(this.#holder, kept);
    if (refusal !== undefined) return refusal;
    const entry = { operation, kept };
    if (this.#kept === undefined) this.#kept = [entry];
    else this.#kept.push(entry);
    return undefined;
  }

  letGo(operation: object): void {
    const index = this.#kept?.findIndex((entry) => entry.operation === operation) ?? -1;
    const [entry] = index < 0 ? [] : (this.#kept?.splice(index, 1) ?? []);
    if (entry === undefined || this.#holder === undefined) return;
    this.#counts.letGo(this.#holder, entry.kept);
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#counts.taken[this.#kind] -= 1;
    if (this.#address !== undefined) give(this.#counts.addresses, this.#address);
    if (this.#holder === undefined) return;
    for (const { kept } of this.#kept ?? []) this.#counts.letGo(this.#holder, kept);
    this.#kept = undefined;
    give(this.#counts.callers, this.#holder.caller);
    give(this.#counts.clients, this.#holder.clientId);
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
