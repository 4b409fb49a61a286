import { Refused } from '@pasarela/client';
import type { Messages } from './messages.ts';

/** What went wrong, as far as it makes a difference to the person in front of the page. */
export type ProblemKind = keyof Messages['problems'];

/** Codes of the gateway's errors (docs/graph.md, "Error codes"), and of sockets that it has closed. */
const KINDS: Readonly<Record<string, ProblemKind>> = {
  UNAUTHENTICATED: 'token',
  '4403': 'token',
  FORBIDDEN: 'forbidden',
  UPSTREAM_TIMEOUT: 'service',
  UPSTREAM_UNAVAILABLE: 'service',
  UPSTREAM_INVALID: 'service',
  UPSTREAM_RATE_LIMITED: 'busy',
  RATE_LIMITED: 'busy',
  STORE_UNAVAILABLE: 'store',
  DRAINING: 'offline',
};

export function kindOf(error: unknown): ProblemKind {
  const code = codeOf(error);
  // A close that ends a stream for good comes as a refusal: the client does not try again by itself.
  const isTriedAgain = isSocketCode(code ?? '') && !(error instanceof Refused);
  if (code !== undefined) return KINDS[code] ?? (isTriedAgain ? 'offline' : 'other');
  // Nothing has answered: the network is gone, or the gateway.
  return 'offline';
}

/** One sentence that says what happened and what to do, in the language of the page. */
export function explain(error: unknown, t: Messages): string {
  return t.problems[kindOf(error)];
}

/** Why a payment was refused, in the language of the page where it knows the reason. */
export function explainRefusal(code: string, message: string, t: Messages): string {
  const reasons: Readonly<Record<string, string>> = t.refusals;
  const kind = KINDS[code];
  return reasons[code] ?? (kind === undefined ? t.refused(message) : t.problems[kind]);
}

const isSocketCode = (code: string): boolean => /^\d+$/.test(code);

function codeOf(error: unknown): string | undefined {
  if (error instanceof Refused) return error.code;
  const code: unknown =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return code === undefined ? undefined : String(code);
}
