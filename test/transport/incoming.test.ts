import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { incomingOf } from '../../src/transport/incoming.ts';

/** What a request with these headers brings. */
function broughtBy(headers: IncomingMessage['headers']) {
  const request = Object.assign(new IncomingMessage(new Socket()), { headers });
  return incomingOf(request, new ServerResponse(request), undefined, undefined);
}

it('a stream is taken up again behind the event that its reader has seen last, and an empty header names none', () => {
  expect(broughtBy({ 'last-event-id': 'cursor' }).lastEventId).toBe('cursor');
  expect(broughtBy({ 'last-event-id': '' }).lastEventId).toBeUndefined();
  expect(broughtBy({}).lastEventId).toBeUndefined();
});
