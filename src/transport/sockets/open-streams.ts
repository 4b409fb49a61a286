/** How many WebSockets and SSE streams may be open at once. */
export interface StreamLimits {
  readonly total: number;
  /** From one network address; see client-address.ts. */
  readonly perAddress: number;
  /** Of one identified caller. */
  readonly perCaller: number;
}

/** The place that one stream takes. */
export interface StreamPlace {
  /** Counts it as this caller's too; false where the caller has no more places. */
  claim(caller: string): boolean;
  /** Gives the place back. Later calls do nothing. */
  leave(): void;
}

export interface OpenStreams {
  /** @param address undefined where it is not known: such streams count in all, and of their callers. */
  enter(address: string | undefined): StreamPlace | 'full' | 'address-full';
}

/** Counts the streams that are open. What it remembers is bounded by their number. */
export function createOpenStreams({ total, perAddress, perCaller }: StreamLimits): OpenStreams {
  let open = 0;
  const addresses = new Map<string, number>();
  const callers = new Map<string, number>();

  return {
    enter(address) {
      if (open >= total) return 'full';
      if (address !== undefined && !take(addresses, address, perAddress)) return 'address-full';
      open += 1;
      let caller: string | undefined;
      let left = false;
      return {
        claim(key) {
          if (left || caller !== undefined || !take(callers, key, perCaller)) return false;
          caller = key;
          return true;
        },
        leave() {
          if (left) return;
          left = true;
          open -= 1;
          if (address !== undefined) give(addresses, address);
          if (caller !== undefined) give(callers, caller);
        },
      };
    },
  };
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
