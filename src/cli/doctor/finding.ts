import { saidBy } from '../../common/openssl-error.ts';

/** One finding of the doctor. */
export interface Finding {
  /** What was looked at, such as `redis`. */
  readonly check: string;
  /** `skipped` if something else must be corrected or set first. */
  readonly status: 'ok' | 'warning' | 'failure' | 'skipped';
  readonly message: string;
  /** What to do about it. */
  readonly cure?: string;
}

/** The findings of one check, under its name. */
export class Findings {
  readonly #check: string;
  readonly #about: string;
  readonly list: Finding[] = [];

  /** @param about begins each message; it says of which of several things the finding is. */
  constructor(check: string, about = '') {
    this.#check = check;
    this.#about = about;
  }

  ok(message: string): void {
    this.#add('ok', message);
  }

  skipped(message: string, cure?: string): void {
    this.#add('skipped', message, cure);
  }

  warning(message: string, cure: string): void {
    this.#add('warning', message, cure);
  }

  failure(message: string, cure: string): void {
    this.#add('failure', message, cure);
  }

  #add(status: Finding['status'], message: string, cure?: string): void {
    const finding = { check: this.#check, status, message: `${this.#about}${message}` };
    this.list.push(cure === undefined ? finding : { ...finding, cure });
  }
}

/** Returns the message of an error's cause, without its full stop. `fetch failed` alone would help nobody. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return reasonOf(error.cause);
  return saidBy(error).replace(/\.$/, '');
}

/** Begins a finding about one of several clients; empty where there is one. */
export const aboutClient = (named: string | undefined): string =>
  named === undefined ? '' : `client ${named}: `;
