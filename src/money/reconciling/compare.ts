/** What accounts held, as it was read between two moments of the gateway's clock, in ms since the epoch. Amounts are centavos. */
export interface BalanceReading {
  readonly from: number;
  readonly to: number;
  readonly balances: Readonly<Record<string, number>>;
}

/** Money that the gateway knows to have moved, or that may have. */
export interface Movement {
  readonly account: string;
  /** Centavos; below zero for money that went out. */
  readonly cents: number;
  /** Between which moments the account has shown it, in ms since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Whether it has moved at all. */
  readonly isCertain: boolean;
}

/** A change of a balance that nothing explains which the gateway knows. */
export interface Difference {
  readonly account: string;
  /** Centavos; above zero where the account holds more than is known. */
  readonly cents: number;
  /** Between which moments it has come about, in ms since the epoch. */
  readonly from: number;
  readonly to: number;
}

/** Readings that are kept from one comparison to the next. */
export interface KnownMovements {
  /** Everything up to here has been explained, or told. */
  readonly baseline: BalanceReading;
  /** Undefined until a second reading has been made. */
  readonly previous: BalanceReading | undefined;
}

/** Sums of movements near a reading that are tried. Beyond that a difference is taken for explained. */
const MOST_SUMS = 4_096;

/**
 * What may have happened to an account between two readings beyond what is known, as sums. Movements near a reading, and those of
 * which it is not known whether they happened, may be in a balance or not, so that there are several. Among them is 0 where there
 * need not be a difference.
 *
 * @param marginMs by how much the clocks of the gateway and of the service may differ, with the way between them
 */
function remaindersOf(
  account: string,
  before: BalanceReading,
  after: BalanceReading,
  movements: readonly Movement[],
  marginMs: number,
): ReadonlySet<number> {
  let left = (after.balances[account] ?? 0) - (before.balances[account] ?? 0);
  const perhaps: number[] = [];
  for (const { account: where, cents, from, to, isCertain } of movements) {
    const isOutside = to < before.from - marginMs || from > after.to + marginMs;
    if (where !== account || isOutside) continue;
    const isInside = from > before.to + marginMs && to < after.from - marginMs;
    if (isInside && isCertain) left -= cents;
    else perhaps.push(cents);
  }
  let remainders = new Set([left]);
  for (const cents of perhaps) {
    remainders = new Set([...remainders, ...[...remainders].map((one) => one - cents)]);
    if (remainders.size > MOST_SUMS) return new Set([0]);
  }
  return remainders;
}

/** What two readings agree on, or the earlier says: the least of it. */
function likeliest(earlier: ReadonlySet<number>, later: ReadonlySet<number>): number {
  const both = [...earlier].filter((cents) => later.has(cents));
  const [first = 0, ...others] = both.length > 0 ? both : [...earlier];
  return others.reduce((least, cents) => (Math.abs(cents) < Math.abs(least) ? cents : least), first);
}

/**
 * Compares a new reading with those before. A difference counts when two readings after one another show one: what a webhook that
 * came late explains by now is none.
 *
 * @param movements all that are known since the baseline
 */
export function reconcile(
  { baseline, previous }: KnownMovements,
  reading: BalanceReading,
  movements: readonly Movement[],
  marginMs: number,
): { readonly kept: KnownMovements; readonly differences: readonly Difference[] } {
  if (previous === undefined) return { kept: { baseline, previous: reading }, differences: [] };
  // An account that is new since the baseline has nothing to be compared with yet.
  const accounts = Object.keys(previous.balances).filter((account) => account in baseline.balances);
  const found = accounts.flatMap((account): (Difference & { readonly lasts: boolean })[] => {
    const earlier = remaindersOf(account, baseline, previous, movements, marginMs);
    if (earlier.has(0)) return [];
    const later =
      account in reading.balances ? remaindersOf(account, baseline, reading, movements, marginMs) : earlier;
    const cents = likeliest(earlier, later);
    return [{ account, cents, from: baseline.from, to: previous.to, lasts: !later.has(0) }];
  });
  const differences = found
    .filter(({ lasts }) => lasts)
    .map(({ lasts: _lasts, ...difference }) => difference);
  const isSettled = differences.length === found.length;
  return { kept: { baseline: isSettled ? previous : baseline, previous: reading }, differences };
}
