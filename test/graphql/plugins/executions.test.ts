import { buildSchema, type ExecutionArgs, type ExecutionResult, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { Waiters } from '../../../src/common/waiters.ts';
import { withOneExecutionHook } from '../../../src/graphql/execution-hook.ts';
import { useAdmission } from '../../../src/graphql/plugins/admission.ts';
import { createDrain } from '../../../src/graphql/plugins/drain.ts';
import { Report } from '../../../src/operation/report.ts';
import { stillTime } from '../../helpers/still-time.ts';

const SCHEMA = buildSchema('type Query { a: Int } type Mutation { a: Int }');
const [QUERY, MUTATION] = [parse('query { a }'), parse('mutation { a }')];

type Result = ExecutionResult | Promise<ExecutionResult>;
type Run = (given: object) => Result;

/** Executes through plugins. */
function execute(plugins: readonly object[], args: object, inner: Run): Result {
  const executing = { onExecute: ({ setExecuteFn }: { setExecuteFn(fn: Run): void }) => setExecuteFn(inner) };
  // The plugins here look at these members of the arguments alone.
  return withOneExecutionHook([executing, ...plugins]).execute(args as ExecutionArgs);
}

const turn = () => new Promise(setImmediate);

describe('operations of one caller beyond its share', () => {
  const start = (queue = 2) => {
    const waits: number[] = [];
    let refused = 0;
    const plugin = useAdmission({
      perCaller: 1,
      queue,
      onWaiting: (count) => waits.push(count),
      onWaited: () => undefined,
      onRefused: () => {
        refused += 1;
      },
    });
    const open: PromiseWithResolvers<ExecutionResult>[] = [];
    const ask = (
      more: {
        caller?: string;
        document?: typeof QUERY;
        waiters?: Waiters;
        ms?: number;
        isOverSocket?: boolean;
      } = {},
    ) => {
      const { caller = 'alma', document = QUERY, waiters, ms = 60_000, isOverSocket = false } = more;
      const contextValue = {
        identity: { requester: { caller, group: caller }, isOverSocket },
        budget: { waiters, deadline: Date.now() + ms },
        report: new Report(),
      };
      return Promise.resolve(
        execute([plugin], { schema: SCHEMA, document, contextValue }, () => {
          const one = Promise.withResolvers<ExecutionResult>();
          open.push(one);
          return one.promise;
        }),
      );
    };
    return { ask, open, waits, refused: () => refused };
  };
  const LIMITED = { errors: [{ extensions: { code: 'RATE_LIMITED', retryAfterMs: expect.any(Number) } }] };

  it('wait, as many as the queue holds, and the next is refused', async () => {
    const { ask, open, waits, refused } = start(2);
    const asked = Array.from({ length: 3 }, () => ask());
    expect([open.length, waits.at(-1)]).toEqual([1, 2]);
    expect(await ask()).toMatchObject(LIMITED);
    expect(refused()).toBe(1);
    // Others are not in their way.
    void ask({ caller: 'berta' });
    expect(open).toHaveLength(2);
    open[0]?.resolve({ data: { a: 1 } });
    expect(await asked[0]).toEqual({ data: { a: 1 } });
    await turn();
    expect([open.length, waits.at(-1)]).toEqual([3, 1]);
  });

  it('of queries keep no mutation waiting', () => {
    const { ask, open } = start();
    void ask();
    void ask();
    void ask({ document: MUTATION });
    void ask({ document: MUTATION });
    expect(open).toHaveLength(3);
  });

  it('say when to come back by how many of their own kind go on at once', async () => {
    using time = stillTime();
    const { ask, open } = start(1);
    const hintOf = async (document: typeof QUERY): Promise<unknown> =>
      (await ask({ document })).errors?.[0]?.extensions['retryAfterMs'];
    // Operations take long, so that the hints are not the shortest that there is.
    for (let count = 0; count < 100; count += 1) {
      const asked = ask();
      await time.pass(10_000);
      open.at(-1)?.resolve({ data: {} });
      await asked;
    }
    for (let count = 0; count < 2; count += 1) void ask();
    for (let count = 0; count < 65; count += 1) void ask({ document: MUTATION });
    const [ofQuery, ofMutation] = [await hintOf(QUERY), await hintOf(MUTATION)];
    // One waits before it in both cases: a query has two turns of one before it, a mutation one turn of 64.
    expect([ofQuery, ofMutation]).toEqual([19_882, 9_941]);
  });

  it('give their places back where they fail', async () => {
    const { ask, open } = start();
    const [first, second] = [ask(), ask()];
    open[0]?.reject(new Error('no'));
    await expect(first).rejects.toThrow('no');
    await turn();
    expect(open).toHaveLength(2);
    open[1]?.resolve({ data: {} });
    await second;
  });

  it('whose caller leaves wait no more, and are not begun', async () => {
    const { ask, open, waits } = start();
    void ask();
    const waiters = new Waiters();
    const left = ask({ waiters });
    waiters.remove();
    expect(await left).toMatchObject(LIMITED);
    expect(waits.at(-1)).toBe(0);
    open[0]?.resolve({ data: {} });
    await turn();
    expect(open).toHaveLength(1);
    // Nor where its caller had left before.
    void ask();
    expect(await ask({ waiters })).toMatchObject(LIMITED);
    expect(waits.at(-1)).toBe(0);
  });

  it('are refused while there is still time to say so, and not begun too late to end', async () => {
    using time = stillTime();
    const { ask, open } = start();
    void ask();
    const late = ask({ ms: 10_000 });
    let end: unknown;
    void late.then((result) => {
      end = result;
    });
    await time.pass(8_900);
    expect(end).toBeUndefined();
    await time.pass(200);
    expect(end).toMatchObject(LIMITED);
    expect(open).toHaveLength(1);
  });

  it('are refused with a status over HTTP, and with none over a socket', async () => {
    const { ask } = start(0);
    void ask();
    expect(await ask()).toMatchObject({ errors: [{ extensions: { http: { status: 429 } } }] });
    const [error] = (await ask({ isOverSocket: true })).errors ?? [];
    expect(error?.extensions).not.toHaveProperty('http');
  });
});

describe('a process that ends', () => {
  const DRAINING = { errors: [{ extensions: { code: 'DRAINING', retryable: true } }] };
  const args = { schema: SCHEMA, document: QUERY };

  it('serves until it begins to, lets what is in flight finish, and takes nothing new', async () => {
    const drain = createDrain();
    const [good, bad] = [Promise.withResolvers<ExecutionResult>(), Promise.withResolvers<ExecutionResult>()];
    drain.markEnding();
    expect(drain.isEnding).toBe(true);
    const asked = [good, bad].map(({ promise }) =>
      Promise.resolve(execute([drain.plugin], args, () => promise)).catch(() => 'failed'),
    );
    // One that has its result at once is not in flight.
    expect(await execute([drain.plugin], args, () => ({ data: {} }))).toEqual({ data: {} });
    let isIdle = false;
    const ended = drain.begin().then(() => {
      isIdle = true;
    });
    expect(await execute([drain.plugin], args, () => ({ data: {} }))).toMatchObject(DRAINING);
    good.resolve({ data: { a: 1 } });
    await asked[0];
    await turn();
    expect(isIdle).toBe(false);
    bad.reject(new Error('no'));
    expect(await asked[1]).toBe('failed');
    await ended;
    // With nothing in flight it ends at once.
    await createDrain().begin();
  });

  it('takes subscriptions until it begins to, and none after', () => {
    const drain = createDrain();
    const answers: unknown[] = [];
    // Only these members of the hook's payload are used.
    const subscribe = drain.plugin.onSubscribe as unknown as (payload: object) => void;
    const ask = () => subscribe({ setSubscribeFn: (refuse: () => unknown) => answers.push(refuse()) });
    drain.markEnding();
    ask();
    expect(answers).toEqual([]);
    void drain.begin();
    ask();
    expect(answers).toMatchObject([DRAINING]);
  });
});

describe('one hook for all plugins', () => {
  const noting = (name: string, log: string[], change = false) => ({
    onExecute({ executeFn, setExecuteFn }: { executeFn: Run; setExecuteFn(fn: Run): void }) {
      log.push(`${name} begins`);
      setExecuteFn((given) => {
        log.push(`${name} runs`);
        return executeFn(given);
      });
      return {
        onExecuteDone({ result, setResult }: { result: ExecutionResult; setResult(other: object): void }) {
          log.push(`${name} ends with ${JSON.stringify(result)}`);
          if (change) setResult({ data: { by: name } });
        },
      };
    },
  });

  it('has each wrap those before it, and each see what those before it have made', () => {
    const log: string[] = [];
    const result = execute([noting('one', log, true), noting('two', log)], {}, () => ({ data: {} }));
    expect(log).toEqual([
      ...['one begins', 'two begins', 'two runs', 'one runs'],
      ...['one ends with {"data":{}}', 'two ends with {"data":{"by":"one"}}'],
    ]);
    expect(result).toEqual({ data: { by: 'one' } });
  });

  it('asks none behind one that has answered, and executes nothing', () => {
    const log: string[] = [];
    const answering = {
      onExecute: ({ setResultAndStopExecution }: { setResultAndStopExecution(result: object): void }) =>
        setResultAndStopExecution({ data: { early: true } }),
    };
    const result = execute([noting('one', log), answering, noting('two', log)], {}, () => {
      throw new Error('is not executed');
    });
    expect(result).toEqual({ data: { early: true } });
    expect(log).toEqual(['one begins', 'one ends with {"data":{"early":true}}']);
  });

  it('refuses a hook that gives a promise', () => {
    const late = { onExecute: async () => undefined };
    expect(() => execute([late], {}, () => ({ data: {} }))).toThrow('promise');
  });
});
