import { clock } from '../../common/clock.ts';

/** The longest pause between looks for sockets whose time is over, in milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** The least number of looks in one lifetime. */
const LOOKS = 20;
/** Service restart (IANA, WebSocket close codes): clients connect again at once, and resume. */
const CONNECT_AGAIN = 1012;

/** What the end of a socket depends on. */
interface Living {
  /** `executed` is the number of queries and mutations that are executed now. */
  readonly extra: { readonly executed: number; close(code: number, reason: string): void };
  /** By operation id. graphql-ws holds null for an operation that has not begun yet. */
  readonly subscriptions: Readonly<Record<string, unknown>>;
}

/** Ends sockets after a lifetime, so that sockets of a full gateway move to an empty one. */
export interface Lifetimes {
  begin(socket: Living): void;
  /** The socket is gone. */
  leave(socket: Living): void;
  stop(): void;
}

const isAsking = ({ extra, subscriptions }: Living): boolean =>
  extra.executed > 0 || Object.values(subscriptions).includes(null);

/**
 * Closes each socket between half of its lifetime and all of it, the oldest first, and spread over that time, so that
 * thousands that came at once do not leave at once. A socket that waits for the answer to a query or a mutation is closed
 * later: when it has the answer, or when every operation that it asked for in its lifetime has ended.
 *
 * @param lifetimeMs 0 for sockets that stay.
 * @param operationMs how long an operation may take.
 */
export function startLifetimes(lifetimeMs: number, operationMs: number): Lifetimes {
  // When each socket came, in the order of coming.
  const since = new Map<Living, number>();
  if (lifetimeMs === 0) return { begin() {}, leave() {}, stop() {} };
  const everyMs = Math.min(LOOK_EVERY_MS, lifetimeMs / LOOKS);
  const share = (2 * everyMs) / lifetimeMs;
  let due = 0;

  const timer = clock.setInterval(() => {
    const now = clock.monotonic();
    due = Math.min(due + since.size * share, 1 + since.size * share);
    for (const [socket, began] of since) {
      if (due < 1 || now - began < lifetimeMs / 2) break;
      if (isAsking(socket) && now - began < lifetimeMs + operationMs) continue;
      due -= 1;
      since.delete(socket);
      socket.extra.close(CONNECT_AGAIN, 'Connect again');
    }
  }, everyMs);
  timer.unref();
  return {
    begin: (socket) => void since.set(socket, clock.monotonic()),
    leave: (socket) => void since.delete(socket),
    stop: () => clock.clearInterval(timer),
  };
}
