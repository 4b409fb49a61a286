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
  readonly list: Finding[] = [];

  constructor(check: string) {
    this.#check = check;
  }

  ok(message: string): void {
    this.list.push({ check: this.#check, status: 'ok', message });
  }

  skipped(message: string, cure?: string): void {
    this.list.push({
      check: this.#check,
      status: 'skipped',
      message,
      ...(cure === undefined ? {} : { cure }),
    });
  }

  warning(message: string, cure: string): void {
    this.list.push({ check: this.#check, status: 'warning', message, cure });
  }

  failure(message: string, cure: string): void {
    this.list.push({ check: this.#check, status: 'failure', message, cure });
  }
}

/** Returns the messages of an error and of its causes. `fetch failed` alone would help nobody. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return reasonOf(error.cause);
  if (error instanceof AggregateError) return reasonOf(error.errors[0]);
  return saidBy(error);
}
