import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';

/** The longest pause between looks for sockets whose time is over, in milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** The least number of looks in one lifetime. */
const LOOKS = 20;
/** Service restart (IANA, WebSocket close codes): clients connect again at once, and resume. */
export const CONNECT_AGAIN = 1012;

/** What the end of a socket depends on. */
interface Living {
  /**
   * `executed` counts the queries and mutations that are executed now, `busy` these mutations and the operations that are prepared, `unsent`
   * the messages that the connection has not taken.
   */
  readonly extra: {
    readonly executed: number;
    readonly busy: number;
    readonly unsent: number;
    close(code: number, reason: string): void;
  };
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

/** How long after the end of its lifetime a socket may stay for what it does now, in milliseconds. */
function patience(socket: Living, operationMs: number): number {
  // A mutation may have begun just before the time for queries was over. Its client would not know whether it was made, and graphql-ws
  // makes it again by itself, also where it has the answer and lacks `complete`.
  if (socket.extra.busy > 0 || socket.extra.unsent > 0) return 2 * operationMs;
  return isAsking(socket) ? operationMs : 0;
}

/**
 * Closes each socket at a random moment between half of its lifetime and all of it, so that thousands that came at once do
 * not leave at once. A socket that waits for the answer to a query or a mutation is closed later: when it has the answer, or
 * at the latest `operationMs` after its moment. One that then waits for the answer to a mutation, or has not taken all of an answer, is
 * closed when it has that, or at the latest twice `operationMs` after its moment.
 *
 * @param lifetimeMs 0 for sockets that stay.
 * @param operationMs how long an operation may take.
 */
export function startLifetimes(lifetimeMs: number, operationMs: number): Lifetimes {
  if (lifetimeMs === 0) return { begin() {}, leave() {}, stop() {} };
  /** When each socket's time is over, in milliseconds of the monotonic clock. */
  const ends = new Map<Living, number>();

  const timer = clock.setInterval(
    () => {
      const now = clock.monotonic();
      for (const [socket, end] of ends) {
        if (now < end + patience(socket, operationMs)) continue;
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
