import { type ExecutionResult, parse } from 'graphql';
import { beforeEach, describe, expect, it } from 'vitest';
import { Waiters } from '../../../src/common/waiters.ts';
import {
  createQueryDeduplication,
  type QueryDeduplication,
} from '../../../src/graphql/plugins/query-deduplication.ts';
import { Report } from '../../../src/operation/report.ts';
import type { CallRecord } from '../../../src/upstream/call/rest.ts';
import { until } from '../../helpers/until.ts';

interface Asking {
  readonly credential?: string;
  readonly apiKey?: string;
  readonly document?: ReturnType<typeof parse>;
  readonly operationName?: string;
  readonly variables?: Record<string, unknown>;
  readonly waiters?: Waiters;
  readonly isOverSocket?: boolean;
  readonly identify?: () => unknown;
  readonly report?: Report;
}

const DOCUMENT = parse('query A($n: Int) { client { id } } query B { client { id } }');
const MUTATION = parse('mutation { pay }');

/** Executions that have begun, in their order; each ends when the test says so. */
let executions: PromiseWithResolvers<ExecutionResult>[];
let shared: QueryDeduplication;
let now: number;
let forgotten: string[];

beforeEach(() => {
  executions = [];
  now = 0;
  forgotten = [];
  shared = createQueryDeduplication(
    () => now,
    (credential) => forgotten.push(credential),
  );
});

/** Passes one operation through the plugin, as the executor does. */
async function ask(asking: Asking = {}): Promise<ExecutionResult> {
  const { document = DOCUMENT, operationName = document === DOCUMENT ? 'A' : undefined } = asking;
  let run: (args: object) => ExecutionResult | Promise<ExecutionResult> = () => {
    const execution = Promise.withResolvers<ExecutionResult>();
    executions.push(execution);
    return execution.promise;
  };
  const args = {
    document,
    operationName,
    variableValues: asking.variables,
    contextValue: {
      identity: {
        credential: asking.credential ?? 'one',
        apiKey: asking.apiKey,
        upstreamIdentity: asking.credential ?? 'one',
        onceMayChange: (work: () => void) => work(),
        identify: asking.identify ?? (() => ({})),
        isOverSocket: asking.isOverSocket ?? false,
      },
      budget: { waiters: asking.waiters },
      report: asking.report ?? new Report(),
    },
  };
  const setExecuteFn = (fn: typeof run): void => {
    run = fn;
  };
  // Only these members of the hook's payload are used, and of what it returns.
  const payload = { args, executeFn: run, setExecuteFn } as unknown as Parameters<
    NonNullable<typeof shared.plugin.onExecute>
  >[0];
  const done = shared.plugin.onExecute?.(payload) as { readonly onExecuteDone?: () => void } | undefined;
  const result = await run(args);
  done?.onExecuteDone?.();
  return result;
}

const end = (index: number, result: ExecutionResult = { data: { index } }): void =>
  executions[index]?.resolve(result);

describe('queries of one caller in the same words', () => {
  it('share one execution while it is under way, and its very result', async () => {
    const [first, second] = [ask({ variables: { n: 1 } }), ask({ variables: { n: 1 } })];
    expect(executions).toHaveLength(1);
    end(0);
    expect(await second).toBe(await first);
  });

  it('share an error too', async () => {
    const both = [ask(), ask()];
    executions[0]?.reject(new Error('no'));
    const results = await Promise.allSettled(both);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('are executed anew once the first has its result', async () => {
    const first = ask();
    end(0);
    await first;
    void ask();
    expect(executions).toHaveLength(2);
  });

  it('are executed anew when the first began more than a second ago', () => {
    void ask();
    now = 1_001;
    void ask();
    void ask();
    expect(executions).toHaveLength(2);
  });

  it('are written once', async () => {
    const [first, second] = [ask(), ask()];
    end(0, { data: { text: 'ñ' } });
    const bytes = shared.stringify(await first);
    // Two equal strings would pass for the same one.
    expect(bytes).toBeInstanceOf(Buffer);
    expect(String(bytes)).toBe('{"data":{"text":"ñ"}}');
    expect(shared.stringify(await second)).toBe(bytes);
  });
});

describe('an execution is not shared', () => {
  it.each<[string, Asking]>([
    ['with another credential', { credential: 'two' }],
    ['with another API key, though the caller is the same', { apiKey: 'k1' }],
    ['with other variables', { variables: { n: 2 } }],
    ['with another operation of the document', { operationName: 'B' }],
    ['with another document', { document: parse('{ client { id } }') }],
    ['over another transport, where a refusal has another form', { isOverSocket: true }],
  ])('%s', (_what, asking) => {
    void ask();
    void ask(asking);
    expect(executions).toHaveLength(2);
  });

  it('when it is a mutation', () => {
    void ask({ document: MUTATION });
    void ask({ document: MUTATION });
    expect(executions).toHaveLength(2);
  });

  it('across a mutation of the same caller, neither its beginning nor its end', async () => {
    void ask();
    const mutation = ask({ document: MUTATION });
    void ask();
    expect(executions).toHaveLength(3);
    expect(forgotten).toEqual(['one']);
    end(1);
    await mutation;
    void ask();
    expect(executions).toHaveLength(4);
    // Nor is what its reads had under way.
    expect(forgotten).toEqual(['one', 'one']);
  });

  it('across a mutation of another caller it still is', () => {
    void ask();
    void ask({ credential: 'two', document: MUTATION });
    void ask();
    expect(executions).toHaveLength(2);
  });

  it('across an event that the caller is told of', () => {
    void ask();
    shared.forget('one', 'one');
    void ask();
    expect(executions).toHaveLength(2);
    expect(forgotten).toEqual(['one']);
  });

  it('across such an event, whichever API keys have come with the queries', () => {
    const keys = ['k1', 'k2', undefined];
    const askWithEach = () => {
      for (const apiKey of keys) void ask(apiKey === undefined ? {} : { apiKey });
    };
    askWithEach();
    askWithEach();
    expect(executions).toHaveLength(keys.length);
    shared.forget('one', 'one');
    askWithEach();
    expect(executions).toHaveLength(2 * keys.length);
  });
});

describe('a caller that is not known yet', () => {
  it('shares an execution once it has been identified', async () => {
    const identity = Promise.withResolvers<unknown>();
    const first = ask();
    const second = ask({ identify: () => identity.promise });
    end(0);
    const result = await first;
    identity.resolve({});
    expect(await second).toBe(result);
    expect(executions).toHaveLength(1);
  });

  it('is executed alone when it cannot be identified, and no longer counts as waiting', async () => {
    const waiters = new Waiters();
    void ask({ waiters });
    const second = ask({ identify: () => Promise.reject(new Error('nobody')), waiters: new Waiters() });
    await until(() => executions.length === 2);
    end(1);
    expect(await second).toEqual({ data: { index: 1 } });
    waiters.remove();
    expect(waiters.signal.aborted).toBe(true);
  });

  it('is counted as gone once, when it leaves and cannot be identified after that', async () => {
    const [first, second] = [new Waiters(), new Waiters()];
    const identity = Promise.withResolvers<unknown>();
    void ask({ waiters: first });
    void ask({ waiters: second, identify: () => identity.promise });
    second.remove();
    identity.reject(new Error('nobody'));
    await until(() => executions.length === 2);
    // The one that began it still waits.
    expect(first.signal.aborted).toBe(false);
    first.remove();
    expect(first.signal.aborted).toBe(true);
  });

  it('is counted as gone once, when it cannot be identified and leaves after that', async () => {
    const [first, second] = [new Waiters(), new Waiters()];
    void ask({ waiters: first });
    void ask({ waiters: second, identify: () => Promise.reject(new Error('nobody')) });
    await until(() => executions.length === 2);
    second.remove();
    expect(first.signal.aborted).toBe(false);
    first.remove();
    expect(first.signal.aborted).toBe(true);
  });
});

it('a caller that joins is told of all calls beneath the result, also of those that the first one shared itself', async () => {
  const call = (path: string): CallRecord => ({
    ...{
      method: 'GET',
      route: path,
      path,
      status: 200,
      milliseconds: 1,
      startedAt: 0,
      queuedMs: 0,
      unreadMs: 0,
    },
    ...{ cached: false, identifies: false },
  });
  const [first, second] = [new Report(), new Report()];
  void ask({ report: first });
  const joined = ask({ report: second });
  first.add(call('/made'));
  first.addShared(call('/shared'));
  end(0);
  await joined;
  expect(second.calls).toEqual([]);
  expect(second.sharedCalls.map(({ path }) => path)).toEqual(['/made', '/shared']);
  expect(second.way.isShared).toBe(true);
});

describe('a caller that leaves', () => {
  it('ends the execution when nobody else waits for it', () => {
    const waiters = new Waiters();
    void ask({ waiters });
    waiters.remove();
    expect(waiters.signal.aborted).toBe(true);
  });

  it('leaves the execution to those that have joined it, until they have left too', () => {
    const [first, second] = [new Waiters(), new Waiters()];
    void ask({ waiters: first });
    void ask({ waiters: second });
    first.remove();
    expect(first.signal.aborted).toBe(false);
    second.remove();
    expect(first.signal.aborted).toBe(true);
  });

  it('ends nothing for the one that it joins, where it has left before it joins', () => {
    const [first, gone] = [new Waiters(), new Waiters()];
    const { signal } = first;
    void ask({ waiters: first });
    gone.remove();
    void ask({ waiters: gone });
    expect(executions).toHaveLength(1);
    expect(signal.aborted).toBe(false);
    first.remove();
    expect(signal.aborted).toBe(true);
  });

  it('leaves nothing to join behind', () => {
    const waiters = new Waiters();
    void ask({ waiters });
    waiters.remove();
    void ask();
    expect(executions).toHaveLength(2);
  });
});
