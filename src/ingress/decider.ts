import { Agent } from 'undici';
import { z } from 'zod';
import { clock } from '../common/clock.ts';

/** What the decider made of a credit. */
type Verdict =
  | { readonly decision: 'ACCEPTED' }
  | { readonly decision: 'REJECTED'; readonly refundReason: string };

export interface Decider {
  /**
   * Posts the envelope as it came and waits up to 2 s. Undefined when no answer came, or any but 200, 201 and 422.
   * A 422 counts only with a `refundReason`: frameworks send it by themselves for bodies they do not like, and here it
   * refunds somebody's money.
   */
  ask(envelope: string): Promise<Verdict | undefined>;
  close(): Promise<void>;
}

const TIMEOUT_MS = 2000;
const MAX_ANSWER_BYTES = 64 * 1024;

const Rejection = z.object({ refundReason: z.string().trim().min(1) });

/** Asks at `MONEY_IN_DECISION_URL`. Redirects are not followed. */
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
        // Whatever went wrong, nothing was decided.
        return undefined;
      }
    },
    close: () => agent.close(),
  };
}
