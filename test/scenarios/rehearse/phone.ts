/**
 * Some phones of the night, in a process of their own: what their TLS costs keeps nobody else waiting, as they are on other machines in
 * production. Its arguments are the number of the first, how many they are, the proxies' origins, the file of their authority and the address
 * of tokens. Its parent is told what they see.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient, type FormattedExecutionResult } from 'graphql-ws';
import { Agent } from 'undici';
import { WebSocket } from 'ws';
import { ask } from './ask.ts';
import { createTurns } from './turns.ts';

/** What the phones tell. */
export type Told =
  /** All have had their connection; whose credits they follow. */
  | { readonly what: 'open'; readonly customerIds: readonly string[] }
  /** A credit has come to its phone for the first time, at a time in milliseconds since the epoch. */
  | { readonly what: 'arrived'; readonly transactionId: string; readonly at: number }
  | { readonly what: 'repeated' | 'gap' | 'reconnected' }
  /** An attempt came to no connection, and why. */
  | { readonly what: 'failed'; readonly why: string }
  /** By how much a timer of this process was late at most since it said so last, in milliseconds. */
  | { readonly what: 'late'; readonly ms: number };

interface MoneyIn {
  readonly id: string;
  readonly cursor: string;
  readonly transactionId: string;
}

/** What one phone remembers. */
interface Memory {
  /**
   * `after` is up to where it has been told everything. Sent as it is whenever a stream begins, and told what has come before anything else
   * can: no stream begins behind it.
   */
  readonly variables: { after: string };
  /** The id of its stream; undefined where that has ended. */
  streamId: string | undefined;
}

/** Phones that are opened at a time. */
const OPENING = 8;
/**
 * Sockets that are made at a time. The gateway gives each 3 s to say who it is: on its own machine a phone has them to itself, and here as
 * long as few others make their TLS beside it.
 */
const CONNECTING = 16;
const SAY_LATE_MS = 1_000;
const TIMER_MS = 10;
/** How long a socket without a stream stays open, in milliseconds; longer than `follow` waits. */
const IDLE_MS = 1_000;
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { id cursor transactionId } }';
/** By how much it comes after all others of the rehearsal where processors are short (nice). */
const AFTER_OTHERS = 5;

setPriority(getPriority() + AFTER_OTHERS);
const [first, count, haproxy = '', nginx = '', authority = '', tokenUrl = ''] = process.argv.slice(2);
const ca = await readFile(authority, 'utf8');
// Beside other work a machine of two cores may take longer than undici's ten seconds for so many first connections.
const agent = new Agent({ connect: { ca, timeout: 30_000 }, connections: 32 });
const turnToConnect = createTurns(CONNECTING);
const tell = (told: Told): void => void process.send?.(told);

class SecureSocket extends WebSocket {
  constructor(address: string, protocols: string) {
    super(address, protocols, { ca });
  }
}

/** @returns whose credits it follows, once it has had its connection. */
async function openPhone(index: number): Promise<string> {
  const customerId = randomUUID();
  const origin = index % 2 === 0 ? haproxy : nginx;
  const bearer = async () =>
    (await fetch(`${tokenUrl}?${new URLSearchParams({ subject: `phone ${index}`, customerId })}`)).text();
  const { data } = await ask(agent, origin, await bearer(), '{ eventCursor }');
  const opened = Promise.withResolvers<void>();
  const memory: Memory = { variables: { after: data.eventCursor }, streamId: undefined };
  void follow(connect(origin, bearer, memory, opened.resolve), memory);
  await opened.promise;
  return customerId;
}

function connect(origin: string, bearer: () => Promise<string>, memory: Memory, onOpen: () => void): Client {
  let wasOpen = false;
  let isOpen = false;
  /** What the attempt that is under way has met: an upgrade that is refused is told so, and then closed as 1006. */
  let met: string | undefined;
  let authorization = '';
  const turn = turnToConnect();
  return createClient({
    // The token is there before the socket.
    url: async () => {
      authorization = await bearer();
      await turn.take();
      return `${origin.replace('https', 'wss')}/graphql`;
    },
    webSocketImpl: SecureSocket,
    connectionParams: () => ({ authorization }),
    // As the project's client does: a stream that ends and is opened again keeps its socket.
    lazyCloseTimeout: IDLE_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    // As the project's client does: spread, and longer each time.
    retryWait: (retries) => pause(Math.random() * Math.min(500 * 2 ** retries, 8_000)),
    generateID: () => {
      const id = randomUUID();
      memory.streamId = id;
      return id;
    },
    on: {
      // As the project's client does: it goes on from its last bookmark, and reads nothing again that came before (docs/events.md).
      ping: (_isReceived, payload) => {
        const { bookmarks = {} } = (payload ?? {}) as { bookmarks?: Record<string, string> };
        const { variables, streamId = '' } = memory;
        variables.after = bookmarks[streamId] ?? variables.after;
      },
      connecting: () => {
        met = undefined;
      },
      error: (error) => {
        // `ws` gives an ErrorEvent.
        met = (error as { message?: string }).message;
      },
      connected: () => {
        turn.end();
        if (wasOpen) tell({ what: 'reconnected' });
        [wasOpen, isOpen] = [true, true];
        onOpen();
      },
      closed: (event) => {
        turn.end();
        // `ws` gives a CloseEvent.
        const { code, reason } = event as { code?: number; reason?: string };
        const proxy = origin === haproxy ? 'HAProxy' : 'nginx';
        if (wasOpen && !isOpen)
          tell({ what: 'failed', why: `phone, ${proxy}: ${met ?? `${code} ${reason}`}` });
        isOpen = false;
      },
    },
  });
}

/** Follows the credits until the night is over, from where it was each time. */
async function follow(client: Client, memory: Memory): Promise<never> {
  const { variables } = memory;
  const ids = new Set<string>();
  const next = ({ data, errors }: FormattedExecutionResult<{ moneyIn?: MoneyIn }>): void => {
    const event = data?.moneyIn;
    if (event === undefined) {
      const gap = errors?.find(({ extensions }) => extensions?.['code'] === 'EVENTS_GAP');
      if (gap === undefined) return;
      tell({ what: 'gap' });
      // From the beginning of what is there: what is known of it comes again.
      variables.after = String(gap.extensions?.['oldest']);
      ids.clear();
      return;
    }
    variables.after = event.cursor;
    if (ids.has(event.id)) tell({ what: 'repeated' });
    ids.add(event.id);
    tell({ what: 'arrived', transactionId: event.transactionId, at: Date.now() });
  };
  for (;;) {
    // One that is refused or cut is opened again where it was.
    await new Promise<void>((resolve) => {
      client.subscribe<{ moneyIn?: MoneyIn }>(
        { query: MONEY_IN, variables },
        { next, error: () => resolve(), complete: resolve },
      );
    });
    memory.streamId = undefined;
    await pause(200);
  }
}

const delays = monitorEventLoopDelay({ resolution: TIMER_MS });
delays.enable();
setInterval(() => {
  tell({ what: 'late', ms: Math.max(0, delays.max / 1e6 - TIMER_MS) });
  delays.reset();
}, SAY_LATE_MS);
// The parent is gone.
process.on('disconnect', () => process.exit(0));
const customerIds: string[] = [];
while (customerIds.length < Number(count)) {
  const opening = Math.min(OPENING, Number(count) - customerIds.length);
  const indexes = Array.from({ length: opening }, (_, at) => Number(first) + customerIds.length + at);
  customerIds.push(...(await Promise.all(indexes.map(openPhone))));
}
tell({ what: 'open', customerIds });
