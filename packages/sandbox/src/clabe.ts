import type { Ids } from './ids.ts';

const WEIGHTS = [3, 7, 1] as const;

/** Check digit of the first 17 digits of a CLABE: weights 3, 7, 1, each product modulo 10 (Banco de México, Circular 14/2017). */
export function clabeCheckDigit(first17: string): string {
  let sum = 0;
  for (let index = 0; index < 17; index += 1) {
    sum += (Number(first17[index]) * (WEIGHTS[index % 3] ?? 0)) % 10;
  }
  return String((10 - (sum % 10)) % 10);
}

/** True for 18 digits whose last one is the check digit of the others. */
export function isClabe(text: string): boolean {
  return /^\d{18}$/.test(text) && clabeCheckDigit(text) === text[17];
}

/** Makes a CLABE of 3 digits bank, 3 digits plaza, 11 digits account and the check digit. */
export function makeClabe(bankCode: string, plaza: string, account: string): string {
  const first17 = `${bankCode}${plaza}${account}`;
  return first17 + clabeCheckDigit(first17);
}

const ACCOUNT_DIGITS = 11;
/** How many accounts share the first four of their digits: a branch. */
const BRANCH_SIZE = 10 ** 7;

/** Issues CLABEs of one bank. None is ever issued twice: the account part is a counter that only grows. */
export class ClabeIssuer {
  readonly #bankCode: string;
  readonly #ids: Ids;
  #last: number;

  constructor(bankCode: string, ids: Ids) {
    this.#bankCode = bankCode;
    this.#ids = ids;
    this.#last = Number(ids.digits('clabe', 4)) * BRANCH_SIZE;
  }

  /** From here on it issues what no other run of the same seed has given to somebody: in another branch, from any number on. */
  beginRun(): void {
    const branch = this.#branch();
    do this.#last = Number(this.#ids.digits('clabe', ACCOUNT_DIGITS));
    while (this.#branch() === branch);
  }

  /** The next CLABE, and the 12-digit account number within it. */
  issue(): { clabeNumber: string; accountNumber: string } {
    this.#last = (this.#last + 1) % 10 ** ACCOUNT_DIGITS;
    const account = String(this.#last).padStart(ACCOUNT_DIGITS, '0');
    const clabeNumber = makeClabe(this.#bankCode, '180', account);
    return { clabeNumber, accountNumber: clabeNumber.slice(6) };
  }

  #branch(): number {
    return Math.floor(this.#last / BRANCH_SIZE);
  }
}
