import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { clock, useClock } from '../../src/common/clock.ts';

/** Answers beside this thread: once it is asked it waits until the state is no longer 0, answers, and sets 3 once the answer has left. */
const SERVER = `
  const { createServer } = require('node:http');
  const { parentPort, workerData: { state, status, body } } = require('node:worker_threads');
  const server = createServer((request, response) => {
    parentPort.postMessage('asked');
    Atomics.wait(state, 0, 0);
    response.writeHead(status).end(body, () => {
      Atomics.store(state, 0, 3);
      Atomics.notify(state, 0);
    });
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

export interface ServerBesideBusy extends AsyncDisposable {
  readonly url: string;
  /**
   * Waits for a request. Then this thread reads no socket until the time of the call is over, by whichever timer of the clock; meanwhile the
   * server answers, or is silent.
   */
  keepBusy(what: 'answered' | 'silent'): Promise<void>;
}

/** A server that answers while this thread is busy. No time of the clock ends before {@link ServerBesideBusy.keepBusy}. */
export async function serveBesideBusy(status: number, body: string): Promise<ServerBesideBusy> {
  const state = new Int32Array(new SharedArrayBuffer(4));
  const server = new Worker(SERVER, { eval: true, workerData: { state, status, body } });
  const [port] = await once(server, 'message');
  const times: (() => void)[] = [];
  const restore = useClock({
    ...clock,
    setTimeout(callback, _ms, ...args) {
      times.push(() => callback(...args));
      const timer = { unref: () => timer };
      return timer;
    },
    clearTimeout: () => {},
    timeoutSignal() {
      const over = new AbortController();
      times.push(() =>
        over.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
      );
      return over.signal;
    },
  });
  return {
    url: `http://127.0.0.1:${port}`,
    async keepBusy(what) {
      await once(server, 'message');
      await clock.immediate();
      if (what === 'answered') {
        Atomics.store(state, 0, 2);
        Atomics.notify(state, 0);
        Atomics.wait(state, 0, 2);
      }
      setTimeout(() => {
        for (const isOver of times) isOver();
      }, 0);
      for (const begun = performance.now(); performance.now() < begun + 2; );
    },
    async [Symbol.asyncDispose]() {
      restore();
      await server.terminate();
    },
  };
}
