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

/** Issues CLABEs of one bank. None is ever issued twice: the account part holds a counter that only grows. */
export class ClabeIssuer {
  readonly #bankCode: string;
  readonly #branch: string;
  #counter = 0;

  constructor(bankCode: string, ids: Ids) {
    this.#bankCode = bankCode;
    this.#branch = ids.digits('clabe', 4);
  }

  /** The next CLABE, and the 12-digit account number within it. */
  issue(): { clabeNumber: string; accountNumber: string } {
    this.#counter += 1;
    const clabeNumber = makeClabe(
      this.#bankCode,
      '180',
      this.#branch + String(this.#counter).padStart(7, '0'),
    );
    return { clabeNumber, accountNumber: clabeNumber.slice(6) };
  }
}
