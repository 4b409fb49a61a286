/** The other side of every SPEI transfer. */
export const SPEI = 'spei';

/** Where a received SPEI credit rests until its receiver has accepted or rejected it. */
export function heldFor(clientId: string): string {
  return `held:${clientId}`;
}

/** The ledger account of a private account. */
export function ledgerAccount(accountId: string): string {
  return `account:${accountId}`;
}

/** One movement in double entry: two lines of opposite sign. Amounts in centavos. */
export interface Movement {
  id: string;
  at: number;
  transactionId: string;
  from: string;
  to: string;
  amount: bigint;
}

/** Thrown when a movement would leave its source below zero. */
class InsufficientFundsError extends Error {
  override name = 'InsufficientFundsError';
}

/**
 * Double-entry book. Balances are kept beside the movements, and `check()` recomputes them from the movements alone. Only
 * `spei`, the world outside, may be negative.
 */
export class Ledger {
  readonly #movements: Movement[] = [];
  readonly #balances = new Map<string, bigint>();

  get movements(): readonly Movement[] {
    return this.#movements;
  }

  balance(account: string): bigint {
    return this.#balances.get(account) ?? 0n;
  }

  /** @throws InsufficientFundsError, with nothing moved. */
  move(movement: Movement): void {
    if (movement.amount <= 0n) throw new RangeError(`an amount above zero is needed, got ${movement.amount}`);
    const left = this.balance(movement.from) - movement.amount;
    if (left < 0n && movement.from !== SPEI) {
      throw new InsufficientFundsError(`${movement.from} holds ${this.balance(movement.from)} centavos`);
    }
    this.#movements.push(movement);
    this.#balances.set(movement.from, left);
    this.#balances.set(movement.to, this.balance(movement.to) + movement.amount);
  }

  /** Balances by account, whether they equal the sums of the movements, and whether all of them add up to zero. */
  check(): { balances: Map<string, bigint>; balanced: boolean } {
    const sums = new Map<string, bigint>();
    for (const { from, to, amount } of this.#movements) {
      sums.set(from, (sums.get(from) ?? 0n) - amount);
      sums.set(to, (sums.get(to) ?? 0n) + amount);
    }
    let total = 0n;
    let balanced = sums.size === this.#balances.size;
    for (const [account, sum] of sums) {
      total += sum;
      if (sum !== this.balance(account) || (sum < 0n && account !== SPEI)) balanced = false;
    }
    return { balances: new Map(this.#balances), balanced: balanced && total === 0n };
  }
}
