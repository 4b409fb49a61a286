import { randomUUID } from 'node:crypto';
import type { Incoming } from '../../operation/context.ts';

/** A socket whose credential may end. */
export interface Watched {
  /** Called when it has ended. */
  lapsed(): void;
}

/** Watches the credential of sockets, once for all that have the same. */
export interface ExpiryWatch {
  /**
   * Watches from now on, unless it does already: a credential that nobody could identify yet is watched from a later call
   * on.
   */
  watch(socket: Watched, authorization: string | undefined): void;
  /** A credential has been found to have ended: all its sockets are told. */
  end(authorization: string | undefined): void;
  /** The socket is gone. */
  leave(socket: Watched, authorization: string | undefined): void;
}

interface Credential {
  readonly sockets: Set<Watched>;
  readonly left: AbortController;
}

/** @param untilExpiry resolves with the reason when a credential holds no longer; rejects when it never held. */
export function createExpiryWatch(
  untilExpiry: (incoming: Incoming, signal: AbortSignal) => Promise<Error | undefined>,
): ExpiryWatch {
  const credentials = new Map<string | undefined, Credential>();

  function begin(authorization: string | undefined): Credential {
    const credential: Credential = { sockets: new Set(), left: new AbortController() };
    credentials.set(authorization, credential);
    const forget = (): void => {
      if (credentials.get(authorization) === credential) credentials.delete(authorization);
    };
    const incoming = {
      requestId: randomUUID(),
      authorization,
      apiKey: undefined,
      lastEventId: undefined,
      waiters: undefined,
      closeSocket: undefined,
    };
    untilExpiry(incoming, credential.left.signal).then((reason) => {
      forget();
      if (reason !== undefined) for (const socket of credential.sockets) socket.lapsed();
    }, forget);
    return credential;
  }

  return {
    watch(socket, authorization) {
      (credentials.get(authorization) ?? begin(authorization)).sockets.add(socket);
    },
    end(authorization) {
      for (const socket of credentials.get(authorization)?.sockets ?? []) socket.lapsed();
    },
    leave(socket, authorization) {
      const credential = credentials.get(authorization);
      if (credential?.sockets.delete(socket) !== true || credential.sockets.size > 0) return;
      credentials.delete(authorization);
      credential.left.abort();
    },
  };
}
