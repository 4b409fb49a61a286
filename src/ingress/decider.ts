import { Agent } from 'undici';
import { z } from 'zod';
import { clock } from '../common/clock.ts';

/** The decider's verdict on a credit. */
type Verdict =
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
const MAX_ANSWER_BYTES = 64 * 1024;

const Rejection = z.object({ refundReason: z.string().trim().min(1) });

/** Asks at `MONEY_IN_DECISION_URL`, without following redirects. */
export function createDecider(url: string): Decider {
  const agent = new Agent({ connect: { timeout: TIMEOUT_MS }, maxResponseSize: MAX_ANSWER_BYTES });
  const { origin, pathname, search } = new URL(url);
  return {
    async ask(envelope) {
      try {
        const { statusCode, body } = await agent.request({
          origin,
          path: pathname + search,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: envelope,
          signal: clock.timeoutSignal(TIMEOUT_MS),
        });
        const text = await body.text();
        if (statusCode === 200 || statusCode === 201) return { decision: 'ACCEPTED' };
        if (statusCode !== 422) return undefined;
        const { refundReason } = Rejection.parse(JSON.parse(text));
        return { decision: 'REJECTED', refundReason };
      } catch {
        // After any error nothing is decided.
        return undefined;
      }
    },
    close: () => agent.close(),
  };
}
