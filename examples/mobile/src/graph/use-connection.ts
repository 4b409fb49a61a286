import { createSocket, type Socket } from '@pasarela/client/graphql-ws';
import { useEffect, useState } from 'react';
import type { Session } from './session.ts';

export interface Connection {
  readonly socket: Socket;
  /** Aborted as the session ends: for what is paid. */
  readonly signal: AbortSignal;
}

/**
 * The connection of one session, undefined until it is made. The effect makes what it closes: React may end an effect and begin it again
 * (`StrictMode`, `Activity`), and what was closed pays nothing any more.
 */
export function useConnection({ endpoint, token }: Session): Connection | undefined {
  const [connection, setConnection] = useState<Connection>();
  useEffect(() => {
    const socket = createSocket({ url: endpoint, token });
    const leaving = new AbortController();
    setConnection({ socket, signal: leaving.signal });
    return () => {
      // A payment that is under way would open the socket again, and go on behind the sign-out.
      leaving.abort();
      socket.close();
      // No screen begins anew with what was left.
      setConnection(undefined);
    };
  }, [endpoint, token]);
  return connection;
}
