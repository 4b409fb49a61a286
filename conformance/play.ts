import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Case, Send, Step, Transport } from './case.ts';
import { ENDED, type Program, startProgram } from './program.ts';
import { Queue } from './queue.ts';
import { type Arrival, startServer } from './server.ts';

/** What a client says last. */
const ENDINGS = ['refused', 'done', 'unknown'];
/** By how much a timer of the client may be early, in milliseconds. */
const EARLY_MS = 20;

const SUBSCRIPTION =
  'subscription ($after: Cursor) { moneyIn(after: $after) { id cursor amount { amount } } }';
const MUTATION =
  'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename ... on UserError { code message } ... on OutcomeUnknown { reason message safeToRetry retryUntil } } }';
const INPUT = {
  amount: '1250.00',
  sourceInstrumentId: 'source',
  destinationInstrumentId: 'destination',
  description: 'Factura 42',
  externalReference: '1234567',
};

/**
 * Plays a case to a client.
 *
 * @param command the client's program and its arguments
 * @returns what the client did wrong; undefined where it did as the case asks
 */
export async function play(
  one: Case,
  transport: Transport,
  command: readonly string[],
): Promise<string | undefined> {
  const operations = new Queue<Arrival>();
  const pongs = new Queue<Arrival>();
  await using server = await disposable(
    startServer((arrival) => (arrival.kind === 'pong' ? pongs : operations).push(arrival)),
  );
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-conformance-'));
  await using _ = { [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  const given = {
    ...one.command,
    url: server.url,
    transport,
    store: join(folder, 'store'),
    ...(one.command.do === 'follow' ? { query: SUBSCRIPTION } : { query: MUTATION, input: INPUT }),
  };
  await using run = new Run(operations, pongs, () => startProgram(command, given));
  try {
    for (const [index, step] of one.script.entries()) {
      const wrong = await run.take(step);
      if (wrong !== undefined)
        return `step ${index + 1}, ${JSON.stringify(step)}: ${wrong}${run.complaint()}`;
    }
    return run.more();
  } catch (cause) {
    return `${String(cause)}${run.complaint()}`;
  }
}

class Run {
  readonly #operations: Queue<Arrival>;
  readonly #pongs: Queue<Arrival>;
  readonly #start: () => Program;
  #program: Program;
  #current: Arrival | undefined;
  #sentAt = 0;
  #input: { readonly idempotencyKey?: unknown } | undefined;

  constructor(operations: Queue<Arrival>, pongs: Queue<Arrival>, start: () => Program) {
    this.#operations = operations;
    this.#pongs = pongs;
    this.#start = start;
    this.#program = this.#started();
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#program[Symbol.asyncDispose]();
  }

  complaint(): string {
    return this.#program.complaint();
  }

  /** @returns what the client has sent and no step has asked for. */
  more(): string | undefined {
    const more = this.#operations.waiting[0];
    return more && `the client sends ${told(more)}, which the case does not ask for`;
  }

  /** @returns what is wrong with what the client did. */
  async take(step: Step): Promise<string | undefined> {
    if ('restart' in step) return this.more() ?? this.#restart();
    if ('client' in step) {
      const { lines } = this.#program;
      const isEnd = step.client === 'ends';
      // A client that should end, or say how the payment or the stream has ended, and sends something instead, is not waited for.
      const isLast = isEnd || ENDINGS.some((ending) => Object.hasOwn(Object(step.client), ending));
      const line = await (isLast ? Promise.race([lines.next(), this.#sent()]) : lines.next());
      return isDeepStrictEqual(line, isEnd ? ENDED : step.client)
        ? undefined
        : `the client says ${JSON.stringify(line)}`;
    }
    if (!('expect' in step)) {
      this.#send(step);
      return undefined;
    }
    if (step.expect === 'pong') {
      await this.#pongs.next();
      return undefined;
    }
    const arrival = await this.#operations.next();
    this.#current = arrival;
    if (arrival.kind !== step.expect) return `the client sends ${told(arrival)}`;
    const waitedMs = arrival.at - this.#sentAt;
    if (step.noSoonerThanMs !== undefined && waitedMs < step.noSoonerThanMs - EARLY_MS)
      return `the client comes back after ${Math.round(waitedMs)} ms`;
    if (step.expect === 'mutation') return this.#sameInput(arrival.input);
    if (step.token !== undefined && step.token !== arrival.token)
      return `the client shows the token ${arrival.token}`;
    if (step.expect === 'eventCursor') return undefined;
    return [step.after].flat().some((after) => after === arrival.after)
      ? undefined
      : `the client sends ${told(arrival)}`;
  }

  #started(): Program {
    const queues = [this.#operations, this.#pongs];
    for (const queue of queues) queue.reopen();
    const program = this.#start();
    void program.ended.then(() => {
      if (program === this.#program) for (const queue of queues) queue.end();
    });
    return program;
  }

  /** The program is killed, unless it has ended, and started anew. */
  async #restart(): Promise<undefined> {
    await this.#program[Symbol.asyncDispose]();
    this.#program = this.#started();
  }

  /** What the client sends next; never, where it ends first. */
  #sent(): Promise<object> {
    return this.#operations.next().then(
      (arrival) => ({ sends: told(arrival) }),
      () => new Promise<never>(() => undefined),
    );
  }

  #send(send: Send): void {
    if (this.#current === undefined) throw new Error('The case answers before it expects anything.');
    this.#sentAt = performance.now();
    this.#current.reply(send);
  }

  /** Rules P2 and P3: a key, and with each repeat the same key and input. */
  #sameInput(input: unknown): string | undefined {
    // An input that is no object has no key.
    const { idempotencyKey, ...fields } = (input ?? {}) as Record<string, unknown>;
    if (!/^[\x20-\x7e]{8,128}$/.test(String(idempotencyKey))) return `the key is ${String(idempotencyKey)}`;
    if (!isDeepStrictEqual(fields, INPUT)) return `the input is ${JSON.stringify(fields)}`;
    const first = this.#input;
    this.#input ??= { idempotencyKey };
    return first !== undefined && first.idempotencyKey !== idempotencyKey
      ? 'the client repeats with another key'
      : undefined;
  }
}

const told = ({ kind, after }: Arrival): string =>
  kind === 'subscribe' ? `${kind} after ${JSON.stringify(after)}` : kind;

async function disposable<Server extends { close(): void }>(server: Promise<Server>) {
  const started = await server;
  return { ...started, [Symbol.asyncDispose]: async () => started.close() };
}
