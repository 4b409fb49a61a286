import { ambient } from './ambient.ts';
import { ConnectionLost } from './lost.ts';

/** The members of a connected `WebSocket` that are used. */
export interface OpenSocket {
  readonly readyState: number;
  send(text: string): void;
  addEventListener(type: 'close', heard: (event: { readonly code: number }) => void): void;
}

/** `WebSocket.OPEN`. */
export const OPEN = 1;

/** The close code of a connection that ended without a word. */
const UNEXPLAINED = 1006;
/** How long the end of a connection that is closing is waited for, in milliseconds. */
const CLOSING_MS = 1_000;

/**
 * Returns a `WebSocket` class that throws nothing. graphql-ws would wait for ever for a socket that was not made: where the
 * class refuses the address, as one with `ws:` on a page of `https:`, and where there is no address at all. Such a socket
 * closes at once. One of `ws` ends the process on an error without a listener, as when it is closed while it connects.
 */
export const heardOf = (implementation: typeof WebSocket): typeof WebSocket =>
  new Proxy(implementation, {
    construct(target, given: ConstructorParameters<typeof WebSocket>) {
      try {
        // Without one a browser would connect to the page's own address, and an app on Android would end.
        if (!given[0]) throw Error();
        const socket = new target(...given);
        socket.addEventListener('error', () => {});
        // React Native on Android does not close a socket that connects: it opens nevertheless. graphql-ws has left it then, which has taken
        // its `onclose` away, and would show the token over it.
        socket.addEventListener('open', () => {
          if (socket.onclose) return;
          socket.onopen = null;
          socket.close();
        });
        return socket;
      } catch (cause) {
        const unmade = { close() {} } as WebSocket;
        ambient.setTimeout(() => unmade.onclose?.(cause as never));
        return unmade;
      }
    },
  });

/**
 * Returns an error with a message for what graphql-ws reports: the event of a close, or an error that a browser does not
 * explain.
 */
export function lostBy(cause: unknown): unknown {
  if (cause instanceof Error || Object(cause) !== cause) return cause;
  const { code, reason, message } = cause as { code?: number; reason?: unknown; message?: unknown };
  const text =
    code === undefined || code === UNEXPLAINED
      ? `No WebSocket: no network, no gateway, or not in CORS_ORIGINS. ${message ?? ''}`
      : `WebSocket closed with ${code} ${reason ?? ''}`;
  return new ConnectionLost(text.trim(), code, cause);
}

/** Resolves with the close event of a socket that is closing, or with nothing if it does not come soon. */
export const closingOf = (socket: OpenSocket): Promise<{ readonly code: number } | undefined> =>
  new Promise((resolve) => {
    socket.addEventListener('close', resolve);
    // A timer calls it with nothing.
    ambient.setTimeout(resolve as () => void, CLOSING_MS);
  });
