import { EventEmitter } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket, type WebSocketServer } from 'ws';
import { clock, type Timer, useClock } from '../../../src/common/clock.ts';
import { startHeartbeat } from '../../../src/transport/sockets/heartbeat.ts';

/** A socket whose peer answers pings, or is gone without a word. */
class Peer extends EventEmitter {
  readyState: number = WebSocket.OPEN;
  pings = 0;
  isEnded = false;
  readonly #answers: boolean;

  constructor(answers: boolean) {
    super();
    this.#answers = answers;
  }

  ping(): void {
    this.pings += 1;
    if (this.#answers) this.emit('pong');
  }

  terminate(): void {
    this.isEnded = true;
  }
}

it('pings each once in twelve seconds, few at a time, and ends those alone that have not answered the last', () => {
  let tick = (): void => undefined;
  let everyMs = 0;
  const timer: Timer = { unref: () => timer };
  onTestFinished(
    useClock({
      ...clock,
      setInterval(callback, ms) {
        tick = callback;
        everyMs = ms;
        return timer;
      },
      clearInterval: () => undefined,
    }),
  );
  const peers = Array.from({ length: 24 }, (_, index) => new Peer(index % 2 === 0));
  // It has begun to close, and its peer does not read the rest.
  const closing = new Peer(false);
  closing.readyState = WebSocket.CLOSING;
  // Nothing else of a server is asked for here.
  const server = Object.assign(new EventEmitter(), { clients: new Set([...peers, closing]) });
  const stop = startHeartbeat(server as unknown as WebSocketServer);
  for (const peer of [...peers, closing]) server.emit('connection', peer);
  const rounds = (count: number) => {
    for (let ms = 0; ms < count * 12_000; ms += everyMs) tick();
  };
  tick();
  expect(peers.filter(({ pings }) => pings > 0).length).toBeLessThanOrEqual(2);
  rounds(3);
  expect(peers.filter(({ isEnded }) => isEnded)).toEqual(peers.filter((_, index) => index % 2 === 1));
  expect(Math.min(...peers.filter((_, index) => index % 2 === 0).map(({ pings }) => pings))).toBe(3);
  expect(closing).toMatchObject({ isEnded: true, pings: 0 });
  stop();
});
