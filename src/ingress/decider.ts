import { Agent } from 'undici';
import { z } from 'zod';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { withTimeLimit } from '../common/time-limit.ts';

/** The decider's verdict on a credit. */
export type Verdict =
  | { readonly decision: 'ACCEPTED' }
  | { readonly decision: 'REJECTED'; readonly refundReason: string };

export interface Decider {
  /**
   * Posts the envelope unchanged, and waits up to 2 s. Resolves with undefined if no answer came, or another than 200, 201
   * and 422. A 422 counts only with a `refundReason`, because frameworks send a 422 by themselves for bodies that they do not
   * like, and here it refunds money.
   */
  ask(envelope: string): Promise<Verdict | undefined>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 2000;
/**
 * How long a connection may take, in milliseconds. undici gives it up to half a second more, and its request does not end before its
 * connection has been made or given up, whatever its signal says.
 */
const CONNECT_TIMEOUT_MS = 1500;
const MAX_ANSWER_BYTES = 64 * 1024;

const Rejection = z.object({ refundReason: z.string().trim().min(1) });

/** Between two log lines on verdicts that are missing, in milliseconds. */
const LINE_EVERY_MS = 60_000;

/** Asks at `MONEY_IN_DECISION_URL`, without following redirects. Why there is no verdict is logged, at most once a minute. */
export function createDecider(url: string, logger: Logger): Decider {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const undecided = (fields: { status?: number; error?: string }): undefined => {
    const now = clock.monotonic();
    if (now - loggedAt < LINE_EVERY_MS) return;
    loggedAt = now;
    logger.warn(fields, 'the decider gave no verdict on a credit');
  };
  const agent = new Agent({
    allowH2: false,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    maxResponseSize: MAX_ANSWER_BYTES,
  });
  const { origin, pathname, search } = new URL(url);
  return {
    async ask(envelope) {
      try {
        const { statusCode, text } = await withTimeLimit(TIMEOUT_MS, async (signal) => {
          const answer = await agent.request({
            origin,
            path: pathname + search,
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: envelope,
            signal,
          });
          return { statusCode: answer.statusCode, text: await answer.body.text() };
        });
        if (statusCode === 200 || statusCode === 201) return { decision: 'ACCEPTED' };
        if (statusCode !== 422) return undecided({ status: statusCode });
        const refundReason = reasonIn(text);
        if (refundReason === undefined) return undecided({ status: 422, error: 'no refundReason' });
        return { decision: 'REJECTED', refundReason };
      } catch (error) {
        // After any error nothing is decided.
        return undecided({ error: kindOf(error) });
      }
    },
    close: () => agent.close(),
  };
}

function reasonIn(text: string): string | undefined {
  try {
    return Rejection.safeParse(JSON.parse(text)).data?.refundReason;
  } catch {
    return undefined;
  }
}

/** Returns the code of an error, such as ECONNREFUSED, or its name. Its message may quote what was sent. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
