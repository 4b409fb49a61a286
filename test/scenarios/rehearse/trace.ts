import { randomBytes } from 'node:crypto';

/** The span that callers of the rehearsal say they are in: what lies right beneath it is the gateway's span of their operation. */
export const CALLER_SPAN = 'b7ad6b7169203331';

/** A new trace (W3C Trace Context): its id, and the header that has the gateway go on with it. */
export function newTrace(): { readonly id: string; readonly traceparent: string } {
  const id = randomBytes(16).toString('hex');
  return { id, traceparent: `00-${id}-${CALLER_SPAN}-01` };
}
