import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';

/** How often it is looked for sockets whose time is over, at most, in milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** How many looks there are at least in a lifetime. */
const LOOKS = 20;
/** Service restart (IANA, WebSocket close codes): clients connect again at once, and go on where they were. */
const CONNECT_AGAIN = 1012;

/** A socket, as far as its end goes. */
interface Living {
  /** With the number of queries and mutations that are executed now. */
  readonly extra: { readonly executed: number; close(code: number, reason: string): void };
  /** graphql-ws holds null for an operation that is not under way yet. */
  readonly subscriptions: Readonly<Record<string, unknown>>;
}

/** Ends sockets in time, so that those of a full gateway come to an empty one. */
export interface Lifetimes {
  begin(socket: Living): void;
  /** The socket is gone. */
  leave(socket: Living): void;
  stop(): void;
}

const isAsking = ({ extra, subscriptions }: Living): boolean =>
  extra.executed > 0 || Object.values(subscriptions).includes(null);

/**
 * Closes each socket at a moment of its own between half of its lifetime and all of it, so that thousands that came at once do not leave
 * at once. One that waits for the answer to a query or a mutation is closed later: once it has the answer, or once every operation has
 * ended that it had asked for in its lifetime.
 *
 * @param lifetimeMs 0 for sockets that stay.
 * @param operationMs how long an operation may take.
 */
export function startLifetimes(lifetimeMs: number, operationMs: number): Lifetimes {
  if (lifetimeMs === 0) return { begin() {}, leave() {}, stop() {} };
  /** When the time of each is over. */
  const ends = new Map<Living, number>();

  const timer = clock.setInterval(
    () => {
      const now = clock.monotonic();
      for (const [socket, end] of ends) {
        if (now < end || (isAsking(socket) && now < end + operationMs)) continue;
        ends.delete(socket);
        socket.extra.close(CONNECT_AGAIN, 'Connect again');
      }
    },
    Math.min(LOOK_EVERY_MS, lifetimeMs / LOOKS),
  );
  timer.unref();
  return {
    begin: (socket) => void ends.set(socket, clock.monotonic() + lifetimeMs * (0.5 + entropy.random() / 2)),
    leave: (socket) => void ends.delete(socket),
    stop: () => clock.clearInterval(timer),
  };
}
