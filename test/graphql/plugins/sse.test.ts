import type { ExecutionResult } from 'graphql';
import { expect, it } from 'vitest';
import { PushStream, type Sink } from '../../../src/common/push-stream.ts';
import { Rounds } from '../../../src/common/rounds.ts';
import { useServerSentEvents } from '../../../src/graphql/plugins/sse.ts';
import { bell } from '../../helpers/bell.ts';

/** A stream that waits. */
class Waiting extends PushStream<ExecutionResult> {
  stopped = false;

  override connect(_sink: Sink<ExecutionResult>): void {}

  override stop(): void {
    this.stopped = true;
  }
}

/** Hands a result to its client, who accepts so much. @returns the status, and how often the request's body was let go of */
async function handed(result: unknown, accept: string) {
  const metrics = {
    delivered: () => undefined,
    gap: () => undefined,
    failed: () => undefined,
    slow: () => undefined,
    lag: () => undefined,
  };
  const { onResultProcess } = useServerSentEvents(metrics, new Rounds(bell()));
  let released = 0;
  let process: ((result: unknown, fetchAPI: unknown) => Response | Promise<Response>) | undefined;
  // What the plugin needs of Yoga's hook.
  onResultProcess?.({
    request: new Request('http://gateway.example/graphql', { headers: { accept } }),
    result,
    serverContext: {
      incoming: { requestId: 'r1' },
      releaseBody: () => {
        released += 1;
      },
    },
    setResultProcessor(chosen: typeof process) {
      process = chosen;
    },
  } as never);
  const response = await process?.(result, { Response });
  return { status: response?.status, released };
}

it('a stream of events keeps nothing of the body that asked for it', async () => {
  expect(await handed(new Waiting(), 'text/event-stream')).toEqual({ status: 200, released: 1 });
});

it('a stream is accepted by a range that it is in, in either case and with parameters', async () => {
  for (const accept of ['Text/Event-Stream;q=0.5', 'application/json, TEXT/*', '*/*'])
    expect(await handed(new Waiting(), accept), accept).toEqual({ status: 200, released: 1 });
});

it('a stream that its client does not accept is ended, and refused', async () => {
  const stream = new Waiting();
  expect(await handed(stream, 'application/json')).toEqual({ status: 406, released: 0 });
  expect(stream.stopped).toBe(true);
});

it('a result that is no stream is left to others, but for one that can come later', async () => {
  expect(await handed({ data: {} }, 'text/event-stream')).toEqual({ status: undefined, released: 0 });
  const later = { errors: [{ message: 'Later.', extensions: { retryable: true } }] };
  expect(await handed(later, 'text/event-stream')).toEqual({ status: 503, released: 0 });
  // As urql asks for a query or a mutation.
  const either = 'application/json, text/event-stream, multipart/mixed';
  expect(await handed(later, either)).toEqual({ status: undefined, released: 0 });
});
