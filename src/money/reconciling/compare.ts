import { inTurns, type Turn } from './in-turns.ts';

/** What accounts held, as it was read between two moments of the gateway's clock, in ms since the epoch. Amounts are centavos. */
export interface BalanceReading {
  readonly from: number;
  readonly to: number;
  readonly balances: Readonly<Record<string, number>>;
}

/** Money that the gateway knows to have moved, or that may have. */
export interface Movement {
  /** Null where it may be any account. */
  readonly account: string | null;
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
 * @param movements of this account
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
  /** How many there are of each amount. */
  const perhaps = new Map<number, number>();
  for (const { cents, from, to, isCertain } of movements) {
    const isOutside = to < before.from - marginMs || from > after.to + marginMs;
    if (isOutside) continue;
    const isInside = from > before.to + marginMs && to < after.from - marginMs;
    if (isInside && isCertain) left -= cents;
    else perhaps.set(cents, (perhaps.get(cents) ?? 0) + 1);
  }
  // None of those that may be in a balance needs to be: there need not be a difference.
  if (left === 0) return new Set([0]);
  const remainders = new Set([left]);
  for (const [cents, count] of perhaps) {
    if (!subtractUpTo(count, cents, remainders)) return new Set([0]);
  }
  return remainders;
}

/**
 * Adds to some sums what they are less one, two, and up to `count` times an amount. Each new sum is gone through once, as of a payroll
 * thousands may have the same amount.
 *
 * @returns false, and leaves off, where they become too many
 */
function subtractUpTo(count: number, cents: number, sums: Set<number>): boolean {
  let latest = [...sums];
  for (let times = 0; times < count && latest.length > 0; times += 1) {
    latest = latest.map((sum) => sum - cents).filter((sum) => !sums.has(sum));
    for (const sum of latest) sums.add(sum);
    if (sums.size > MOST_SUMS) return false;
  }
  return true;
}

/** The smallest amount that both readings allow; where they share none, the smallest that the earlier allows. */
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
 * @param turn there may be many accounts and movements: what somebody waits for goes first
 */
export async function reconcile(
  { baseline, previous }: KnownMovements,
  reading: BalanceReading,
  movements: readonly Movement[],
  marginMs: number,
  turn: Turn,
): Promise<{ readonly kept: KnownMovements; readonly differences: readonly Difference[] }> {
  if (previous === undefined) return { kept: { baseline, previous: reading }, differences: [] };
  const movementsAt = await byAccount(movements, turn);
  const found: (Difference & { readonly lasts: boolean })[] = [];
  await inTurns(Object.keys(previous.balances), turn, (account) => {
    // An account that is new since the baseline has nothing to be compared with yet.
    if (!(account in baseline.balances)) return;
    const own = movementsAt(account);
    const earlier = remaindersOf(account, baseline, previous, own, marginMs);
    if (earlier.has(0)) return;
    const later =
      account in reading.balances ? remaindersOf(account, baseline, reading, own, marginMs) : earlier;
    const cents = likeliest(earlier, later);
    found.push({ account, cents, from: baseline.from, to: previous.to, lasts: !later.has(0) });
  });
  const differences = found
    .filter(({ lasts }) => lasts)
    .map(({ lasts: _lasts, ...difference }) => difference);
  const isSettled = differences.length === found.length;
  const next = isSettled ? previous : withTold(baseline, differences);
  return { kept: { baseline: next, previous: reading }, differences };
}

/** The baseline with the told differences added to its balances, so that the next comparison does not tell them again. */
function withTold(baseline: BalanceReading, told: readonly Difference[]): BalanceReading {
  if (told.length === 0) return baseline;
  const balances = { ...baseline.balances };
  for (const { account, cents } of told) balances[account] = (balances[account] ?? 0) + cents;
  return { ...baseline, balances };
}

/** Finds the movements that are, or may be, of an account. */
async function byAccount(
  movements: readonly Movement[],
  turn: Turn,
): Promise<(account: string) => readonly Movement[]> {
  const anywhere: Movement[] = [];
  const known = new Map<string, Movement[]>();
  await inTurns(movements, turn, (movement) => {
    const { account } = movement;
    const own = account === null ? anywhere : known.get(account);
    if (own !== undefined) own.push(movement);
    else if (account !== null) known.set(account, [movement]);
  });
  return (account) => {
    const own = known.get(account);
    if (own === undefined) return anywhere;
    return anywhere.length === 0 ? own : [...own, ...anywhere];
  };
}
