import { createHash, createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { clock } from '../../common/clock.ts';
import { withTimeLimit } from '../../common/time-limit.ts';
import { UsageError } from '../command.ts';
import { reasonOf } from '../doctor/finding.ts';
import { createDayFiles } from './day-files.ts';
import type { Problem, Receiver } from './receiver.ts';

/** How long one delivery may take, in milliseconds. */
const TIMEOUT_MS = 30_000;
/**
 * How long a connection may take, in milliseconds. Together with the longest pause, this is how long it takes to notice that
 * a receiver is back.
 */
const CONNECT_TIMEOUT_MS = 2_000;
/** The longest wait that a receiver may ask for, in milliseconds. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;
/** Statuses of a receiver, or of a proxy before it, that takes nothing at all. */
const AWAY = new Set([429, 502, 503, 504]);

/** Returns the id of the receiver at an address. */
export const receiverId = (to: string): string => createHash('sha256').update(to).digest('hex').slice(0, 12);

/**
 * Returns the receiver at an address: `http:`, `https:`, or `file:` for a folder that gets one file a day.
 *
 * @param secret signs deliveries over HTTP
 * @throws UsageError for another address
 */
export function receiverAt(to: string, secret: string | undefined): Receiver {
  const url = URL.parse(to);
  if (url?.protocol === 'file:' && url.host === '') {
    return { id: receiverId(to), shownAs: to, ...createDayFiles(fileURLToPath(url)) };
  }
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `--to got "${to}", wants the http or https address of a receiver, or file:///folder`,
    );
  }
  // None would be sent; what is posted is signed.
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(
      '--to names a user or a password, which are not sent: put what the receiver wants into the path',
    );
  }
  if (secret === undefined) throw new UsageError('FORWARD_SECRET is not set');
  // One connection, because an event is posted only once the one before has been answered.
  const agent = new Agent({ connections: 1, allowH2: false, connect: { timeout: CONNECT_TIMEOUT_MS } });
  return {
    id: receiverId(to),
    shownAs: url.origin,
    take: (event) => post(url, JSON.stringify(event), secret, agent),
    close: () => agent.destroy(),
  };
}

/**
 * Returns the header of a delivery: `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>", in hexadecimal>`. Because the
 * time is signed too, a receiver can refuse a delivery that somebody has recorded and sends again.
 */
function signatureOf(secret: string, seconds: number, body: string): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

async function post(
  { origin, pathname, search }: URL,
  body: string,
  secret: string,
  agent: Agent,
): Promise<Problem | undefined> {
  try {
    const { statusCode, headers } = await withTimeLimit(TIMEOUT_MS, async (signal) => {
      // It follows no redirect: a text that is signed for one address must not go to another.
      const answer = await agent.request({
        origin,
        path: pathname + search,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'pasarela-signature': signatureOf(secret, Math.floor(clock.now() / 1000), body),
        },
        body,
        signal,
      });
      await answer.body.dump();
      return answer;
    });
    if (statusCode >= 200 && statusCode < 300) return undefined;
    return {
      text: `the receiver answered ${statusCode}`,
      isAway: AWAY.has(statusCode),
      retryAfterMs: retryAfter(headers['retry-after']),
    };
  } catch (error) {
    return { text: reasonOf(error), isAway: true };
  }
}

/** Reads `Retry-After` in seconds, the usual form (RFC 9110, 10.2.3). A date is ignored, because clocks differ. */
function retryAfter(header: string | string[] | undefined): number | undefined {
  if (typeof header !== 'string' || !/^\d{1,9}$/.test(header)) return undefined;
  return Math.min(Number(header) * 1_000, LONGEST_RETRY_AFTER_MS);
}
