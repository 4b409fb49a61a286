import { buildSchema, type ExecutionResult, GraphQLError, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { UnauthenticatedError } from '../../../src/auth/authenticator.ts';
import { PushStream, type Sink } from '../../../src/common/push-stream.ts';
import { useCredentialEnd } from '../../../src/graphql/plugins/credential-end.ts';
import { useErrorMasking } from '../../../src/graphql/plugins/error-masking.ts';
import { useOperationContext } from '../../../src/graphql/plugins/operation-context.ts';
import { useOperationMetrics } from '../../../src/graphql/plugins/operation-metrics.ts';
import { useStreamLimit } from '../../../src/graphql/plugins/stream-limit.ts';
import { toPublicError } from '../../../src/graphql/public-errors.ts';
import { STREAM_REFUSALS, type StreamRefusal } from '../../../src/operation/streams.ts';

/** A stream whose items the test hands on. */
class Source extends PushStream<ExecutionResult> {
  sink: Sink<ExecutionResult> | undefined;
  isStopped = false;

  override connect(sink: Sink<ExecutionResult>): void {
    this.sink = sink;
  }

  override stop(): void {
    this.isStopped = true;
  }

  override caughtUpTo(): string {
    return 'here';
  }

  override bookmark(): string {
    return 'cursor';
  }
}

/** Notes all that it is given. */
class Noting implements Sink<ExecutionResult> {
  readonly got: unknown[] = [];

  take(result: ExecutionResult): void {
    this.got.push(result);
  }

  finish(error?: unknown): void {
    this.got.push(error ?? 'end');
  }

  rests(): void {
    this.got.push('rests');
  }
}

const SCHEMA = buildSchema('type Query { a: Int } type Subscription { a: Int }');
const DOCUMENT = parse('subscription { a }');

/** Subscribing through one plugin: what its result is made to. */
function subscribed(
  plugin: { readonly onSubscribe?: unknown },
  contextValue: object,
  result: unknown,
): unknown {
  const args = { schema: SCHEMA, document: DOCUMENT, contextValue };
  // Only these members of the hook's payload are used, and of what it returns.
  const hook = plugin.onSubscribe as (payload: object) => {
    onSubscribeResult?: (payload: object) => void;
  };
  let made = result;
  hook({ args }).onSubscribeResult?.({
    args,
    result,
    setResult: (other: unknown) => {
      made = other;
    },
  });
  return made;
}

const streamOf = (made: unknown): PushStream<ExecutionResult> => {
  if (made instanceof PushStream) return made;
  throw new Error('it is a stream');
};

const turn = () => new Promise(setImmediate);

describe('a stream of a credential that ends', () => {
  const start = (isOverSocket = false) => {
    const source = new Source();
    const sink = new Noting();
    const ended = Promise.withResolvers<Error | undefined>();
    const why = Promise.withResolvers<boolean>();
    let until: AbortSignal | undefined;
    const identity = {
      isOverSocket,
      untilExpiry: (signal: AbortSignal) => {
        until = signal;
        return ended.promise;
      },
      hasEnded: () => why.promise,
      doubtIfRefused: () => undefined,
    };
    const made = streamOf(subscribed(useCredentialEnd(), { identity }, source));
    made.connect(sink);
    return { source, sink, ended, why, made, isWatched: () => until?.aborted === false };
  };

  it('says so, and ends what it reads', async () => {
    const { source, sink, ended } = start();
    source.sink?.take({ data: { a: 1 } });
    source.sink?.rests?.();
    const over = new Error('over');
    ended.resolve(over);
    await turn();
    expect(sink.got).toEqual([{ data: { a: 1 } }, 'rests', over]);
    expect(source.isStopped).toBe(true);
  });

  it.each(['ends by itself', 'is left'])('is watched until the stream %s, and not longer', async (how) => {
    const { source, sink, ended, made, isWatched } = start();
    expect(isWatched()).toBe(true);
    if (how === 'is left') made.stop();
    else source.sink?.finish();
    expect(isWatched()).toBe(false);
    ended.resolve(new Error('late'));
    await turn();
    expect(sink.got).toEqual(how === 'is left' ? [] : ['end']);
    expect(source.isStopped).toBe(how === 'is left');
  });

  const refused: ExecutionResult = {
    errors: [new GraphQLError('no', { originalError: new UnauthenticatedError('no') })],
  };

  it('says so instead of what it could not read, once the credential is refused again', async () => {
    const { source, sink, why, ended } = start();
    source.sink?.take(refused);
    expect(sink.got).toEqual([]);
    const over = new Error('over');
    why.resolve(true);
    ended.resolve(over);
    await turn();
    expect(sink.got).toEqual([over]);
    expect(source.isStopped).toBe(true);
  });

  it('shows what was refused for another reason, and nothing to one who has left meanwhile', async () => {
    const lasting = start();
    lasting.source.sink?.take(refused);
    lasting.why.resolve(false);
    await turn();
    expect(lasting.sink.got).toEqual([refused]);
    expect(lasting.source.isStopped).toBe(false);

    const left = start();
    left.source.sink?.take(refused);
    left.made.stop();
    left.why.resolve(false);
    await turn();
    expect(left.sink.got).toEqual([]);
  });

  it('stands where the stream does that it reads', () => {
    const { made } = start();
    expect([made.caughtUpTo(), made.bookmark()]).toEqual(['here', 'cursor']);
  });

  it('goes on while nothing can be found out, and over a socket is left to that', async () => {
    const { sink, source, ended } = start();
    ended.reject(new Error('cannot be told'));
    await turn();
    source.sink?.take({ data: { a: 1 } });
    expect(sink.got).toHaveLength(1);
    const over = start(true);
    expect([over.made === over.source, over.isWatched()]).toEqual([true, false]);
  });
});

it('a subscription that is refused has its credential asked about where the service has refused it', () => {
  let doubted = 0;
  const identity = { isOverSocket: false, doubtIfRefused: () => (doubted += 1) };
  const refused = { errors: [new GraphQLError('no')] };
  expect(subscribed(useCredentialEnd(), { identity }, refused)).toBe(refused);
  expect(doubted).toBe(1);
});

describe('a stream that fails', () => {
  const masked: unknown[] = [];
  const failed: unknown[] = [];
  const masking = useErrorMasking({
    onErrors: () => undefined,
    translate: toPublicError,
    translateInvalid: (error) => error,
    locationsOf: () => ({}),
    onMasked: (error, requestId) => masked.push([error, requestId]),
    onFailed: (result) => failed.push(result),
    tellRefused: () => undefined,
  });

  it('ends with a last result of what callers may read, and the rest is told to the operator', () => {
    const source = new Source();
    const sink = new Noting();
    streamOf(subscribed(masking, { requestId: 'r1' }, source)).connect(sink);
    const secret = new Error('secret');
    source.sink?.finish(secret);
    expect(sink.got).toEqual([
      {
        errors: [
          expect.objectContaining({
            message: 'Unexpected error',
            extensions: { code: 'INTERNAL', requestId: 'r1' },
          }),
        ],
      },
      'end',
    ]);
    expect(masked).toEqual([[secret, 'r1']]);
  });

  it('lists 100 errors, and says of the others how many they are, under a code that refuses nothing', () => {
    const source = new Source();
    const sink = new Noting();
    streamOf(subscribed(masking, { requestId: 'r1' }, source)).connect(sink);
    const errors = Array.from({ length: 102 }, () => new GraphQLError('The bank cannot be read.'));
    source.sink?.take({ data: { createMoneyOut: null }, errors });
    const [{ data, errors: shown = [] }] = sink.got as [ExecutionResult];
    expect(data).toEqual({ createMoneyOut: null });
    expect(shown).toHaveLength(101);
    expect(shown.at(-1)).toMatchObject({
      message: '2 more errors are left out.',
      path: undefined,
      extensions: { code: 'MORE_ERRORS', requestId: 'r1' },
    });
  });

  it('counts as failed where it has not begun, and a result without errors does not', () => {
    const context = { requestId: 'r2' };
    const refused = subscribed(masking, context, { errors: [new GraphQLError('no')] });
    subscribed(masking, context, { data: { a: 1 } });
    expect(failed).toEqual([refused]);
  });
});

describe('a stream beside too many others', () => {
  /** What a plugin's hook makes of a subscription, and the number of times that the field was asked for its stream. */
  const begin = async (refusal: StreamRefusal | undefined, { isKnown = true, countsStreams = true } = {}) => {
    const source = new Source();
    const counted: unknown[] = [];
    const contextValue = {
      identity: { identify: () => (isKnown ? Promise.resolve('alma') : Promise.reject(new Error('nobody'))) },
      budget: {
        countsStreams,
        openStream: (caller: unknown) => {
          counted.push(caller);
          return refusal;
        },
      },
    };
    let reads = 0;
    let subscribe = (_args: object): unknown => {
      reads += 1;
      return source;
    };
    // Only these members of the hook's payload are used.
    const hook = useStreamLimit().onSubscribe as unknown as (payload: object) => void;
    hook({
      args: { schema: SCHEMA, document: DOCUMENT, contextValue },
      subscribeFn: subscribe,
      setSubscribeFn: (fn: typeof subscribe) => {
        subscribe = fn;
      },
    });
    return { source, counted, made: await subscribe({}), reads };
  };

  it('is refused before anything is read for it', async () => {
    const { made, reads } = await begin('caller-full');
    expect(made).toMatchObject({ errors: [{ extensions: { code: 'TOO_COMPLEX', retryable: true } }] });
    expect(reads).toBe(0);
  });

  it('may come again later, whatever was full', async () => {
    for (const refusal of Object.keys(STREAM_REFUSALS) as StreamRefusal[]) {
      const { made } = await begin(refusal);
      expect(made).toMatchObject({ errors: [{ extensions: { retryable: true } }] });
    }
  });

  it('is let in where there is room, and counted as its caller’s', async () => {
    const { source, made, counted, reads } = await begin(undefined);
    expect([made, counted, reads]).toEqual([source, ['alma'], 1]);
  });

  it('is left to the field where nobody is identified, and counts for nobody', async () => {
    const { source, made, counted } = await begin('caller-full', { isKnown: false });
    expect([made, counted]).toEqual([source, []]);
  });

  it('has the seat of its socket where it comes over one', async () => {
    const { source, made, counted } = await begin('caller-full', { countsStreams: false });
    expect([made, counted]).toEqual([source, []]);
  });
});

it('a subscription counts as one that is open, or as refused', () => {
  const observed: unknown[] = [];
  const metrics = useOperationMetrics(
    (type, outcome) => observed.push([type, outcome]),
    () => undefined,
  );
  subscribed(metrics, {}, new Source());
  subscribed(metrics, {}, { errors: [new Error('no')] });
  expect(observed).toEqual([
    ['subscription', 'ok'],
    ['subscription', 'error'],
  ]);
});

it('a subscription has a context of its own, of a stream', () => {
  const made: unknown[] = [];
  const plugin = useOperationContext((initial: object, isStream) => {
    const context = { initial, isStream };
    made.push(context);
    return context;
  });
  const initial = {};
  const args = { contextValue: initial };
  // Only this member of the hook's payload is used.
  const hook = plugin.onSubscribe as unknown as (payload: object) => void;
  hook({ args });
  const [context] = made;
  expect(context).toEqual({ initial, isStream: true });
  expect(args.contextValue).toBe(context);
});
