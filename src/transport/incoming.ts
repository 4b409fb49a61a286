import type { IncomingMessage, ServerResponse } from 'node:http';
import { entropy } from '../common/entropy.ts';
import { Waiters } from '../common/waiters.ts';
import type { Incoming } from '../operation/incoming.ts';

const REQUEST_ID = /^[\w-]{8,64}$/;

/**
 * Returns what an HTTP request brings to its operation. A plain `x-request-id` of the client is kept, so that the logs of
 * both sides can be joined.
 */
export function incomingOf(
  request: IncomingMessage,
  response: ServerResponse,
  addressOf: Incoming['addressOf'],
  openStream: Incoming['openStream'],
): Incoming {
  const header = request.headers['x-request-id'];
  const requestId = typeof header === 'string' && REQUEST_ID.test(header) ? header : entropy.uuid();
  response.setHeader('x-request-id', requestId);
  const waiters = new Waiters();
  response.on('close', () => {
    if (!response.writableFinished) waiters.remove();
  });
  const apiKey = request.headers['x-api-key'];
  const lastEventId = request.headers['last-event-id'];
  return {
    requestId,
    authorization: request.headers.authorization,
    apiKey: typeof apiKey === 'string' ? apiKey : undefined,
    lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
    waiters,
    addressOf,
    openStream,
    closeSockets: undefined,
  };
}
