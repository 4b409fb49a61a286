import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import type { Case, Send, Step, Transport } from './case.ts';
import { type Arrival, startServer } from './server.ts';

/** How long the client may take for a step of the script, in milliseconds. */
const PATIENCE_MS = 30_000;
/** How long a client may take for a case, in milliseconds. */
const LIFETIME_MS = 300_000;
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
  await using client = startClient(command, {
    ...one.command,
    url: server.url,
    transport,
    ...(one.command.do === 'follow' ? { query: SUBSCRIPTION } : { query: MUTATION, input: INPUT }),
  });
  void client.ended.then(() => {
    for (const queue of [operations, pongs]) queue.end();
  });
  const run = new Run(operations, pongs, client.lines);
  try {
    for (const [index, step] of one.script.entries()) {
      const wrong = await run.take(step);
      if (wrong !== undefined)
        return `step ${index + 1}, ${JSON.stringify(step)}: ${wrong}${client.complaint()}`;
    }
    const more = operations.waiting[0];
    return more && `sent ${told(more)} that the case does not ask for`;
  } catch (cause) {
    return `${String(cause)}${client.complaint()}`;
  }
}

class Run {
  readonly #operations: Queue<Arrival>;
  readonly #pongs: Queue<Arrival>;
  readonly #lines: Queue<unknown>;
  #current: Arrival | undefined;
  #sentAt = 0;
  #input: { readonly idempotencyKey?: unknown } | undefined;

  constructor(operations: Queue<Arrival>, pongs: Queue<Arrival>, lines: Queue<unknown>) {
    this.#operations = operations;
    this.#pongs = pongs;
    this.#lines = lines;
  }

  /** @returns what is wrong with what the client did. */
  async take(step: Step): Promise<string | undefined> {
    if ('client' in step) {
      const isEnd = step.client === 'ends';
      // A client that should end, or say how the payment or the stream has ended, and sends something instead, is not waited for.
      const isLast = isEnd || ENDINGS.some((ending) => Object.hasOwn(Object(step.client), ending));
      const line = await (isLast ? Promise.race([this.#lines.next(), this.#sent()]) : this.#lines.next());
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
    if (step.expect === 'mutation') return this.#sameInput(arrival.input);
    if (step.token !== undefined && step.token !== arrival.token)
      return `the client shows the token ${arrival.token}`;
    if (step.expect === 'eventCursor') return undefined;
    if (![step.after].flat().some((after) => after === arrival.after))
      return `the client sends ${told(arrival)}`;
    const waitedMs = arrival.at - this.#sentAt;
    return step.noSoonerThanMs !== undefined && waitedMs < step.noSoonerThanMs - EARLY_MS
      ? `the client comes back after ${Math.round(waitedMs)} ms`
      : undefined;
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

/** What stands behind a client's last line. */
const ENDED = 'the end';

const told = ({ kind, after }: Arrival): string =>
  kind === 'subscribe' ? `${kind} after ${JSON.stringify(after)}` : kind;

/** What one side has done and the script has not yet come to. */
class Queue<Item> {
  readonly waiting: Item[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  push(item: Item): void {
    this.waiting.push(item);
    this.#wake?.();
  }

  /** Nothing more will come. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** @throws where the client does nothing for too long. */
  async next(): Promise<Item> {
    if (this.waiting.length === 0 && !this.#ended) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const late = setTimeout(
        () => reject(new Error(`The client did nothing for ${PATIENCE_MS} ms.`)),
        PATIENCE_MS,
      );
      await promise.finally(() => clearTimeout(late));
    }
    const [item] = this.waiting.splice(0, 1);
    if (item === undefined) throw new Error('The client has ended.');
    return item;
  }
}

async function disposable<Server extends { close(): void }>(server: Promise<Server>) {
  const started = await server;
  return { ...started, [Symbol.asyncDispose]: async () => started.close() };
}

/** Starts the client's program, gives it its command as a line, and reads what it writes. */
function startClient([program = '', ...words]: readonly string[], command: object) {
  const lines = new Queue<unknown>();
  const client = spawn(program, words, { stdio: 'pipe', timeout: LIFETIME_MS, killSignal: 'SIGKILL' });
  const ended = Promise.withResolvers<void>();
  let complaint = '';
  const complain = (said: unknown) => {
    complaint += String(said);
  };
  client.stderr.on('data', complain);
  client.on('error', (cause) => {
    complain(cause);
    ended.resolve();
  });
  // A program that has ended takes no command.
  client.stdin.on('error', complain);
  client.stdin.end(`${JSON.stringify(command)}\n`);
  createInterface(client.stdout).on('line', (line) => lines.push(parsed(line)));
  client.on('close', () => {
    lines.push(ENDED);
    ended.resolve();
  });
  return {
    lines,
    ended: ended.promise,
    complaint: () => (complaint === '' ? '' : `\n${complaint}`),
    async [Symbol.asyncDispose]() {
      client.kill('SIGKILL');
      await ended.promise;
    },
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}
