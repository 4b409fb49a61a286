import type { ServerResponse } from 'node:http';

/** Ends each connection with the answer that it carries, once the server is stopping. */
export interface Connections {
  /** Called with each answer before anything is written of it. */
  watch(response: ServerResponse): void;
  /** From now on answers are the last of their connection; those under way too, whose head is not written yet. */
  end(): void;
}

/** Without it a client's connection would be kept for its next request, and the server's end with it. */
export function createConnections(): Connections {
  const underWay = new Set<ServerResponse>();
  let ending = false;
  const makeLast = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  return {
    watch(response) {
      if (ending) makeLast(response);
      underWay.add(response);
      response.once('close', () => underWay.delete(response));
    },
    end() {
      ending = true;
      for (const response of underWay) makeLast(response);
    },
  };
}
