import { createClient, type SubscribePayload } from 'graphql-ws';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { clock, type Timer } from '../common/clock.ts';
import { CommandError } from './command.ts';
import { reasonOf } from './doctor/finding.ts';
import { areUnread, type GraphClient, type GraphFailure, type Shown } from './graph.ts';

/** Longest wait between attempts to connect again, in milliseconds. */
const LONGEST_WAIT_MS = 10_000;
/** If a socket was open for this long, in milliseconds, the next wait is a short one. */
const STEADY_MS = 5_000;
/** How long each step of connecting may take, in milliseconds. */
const CONNECT_MS = 15_000;
/** How often a socket is pinged, and how long the answer may take, in milliseconds (PROTOCOL.md, K2). */
const PING_EVERY_MS = 10_000;
const PONG_WITHIN_MS = 5_000;
/** How much may wait for a reader that is slower than the gateway. Beyond that the connection ends, and resumes once all is read. */
const MOST_WAITING = 10_000;

/**
 * What one subscription yields: data, the cursor up to which all data has been sent, the errors that end it, or what has broken
 * the connection for good.
 */
type Step = Shown | { readonly bookmark: string } | { readonly failures: readonly GraphFailure[] };
type Heard = Step | { readonly broken: unknown };

/**
 * Subscribes over WebSocket, and connects again for as long as it takes. Each time it sends `variables` as they then are, so
 * a caller that keeps a cursor in them resumes.
 *
 * @param onTrouble is told why no token can be had or no connection comes about: each reason once, until one does
 * @throws CommandError if the gateway closes the socket for good: for a token that has ended where no other can be had, or for a defect
 */
export async function* subscribe(
  graph: GraphClient,
  document: string,
  variables: Record<string, unknown>,
  onReconnect: () => void,
  onTrouble: (reason: string) => void = () => undefined,
): AsyncGenerator<Step, void> {
  const told = new Set<string>();
  const tell = (reason: string) => {
    if (!told.has(reason)) onTrouble(reason);
    told.add(reason);
  };
  let opened = 0;
  let refused: string | undefined;
  for (let retries = 0; ; retries += 1) {
    const token = await graph.token.get(refused).catch((error: unknown) => {
      tell(error instanceof Error ? error.message : String(error));
    });
    if (token !== undefined) {
      let openedAt = Number.POSITIVE_INFINITY;
      const onOpen = () => {
        openedAt = clock.monotonic();
        opened += 1;
        told.clear();
        if (opened > 1) onReconnect();
      };
      let broken: unknown;
      for await (const heard of overSocket(graph.url, token, { query: document, variables }, onOpen)) {
        if ('broken' in heard) broken = heard.broken;
        else yield heard;
      }
      if (broken === undefined) return;
      const code = Closed.safeParse(broken).data?.code;
      if (DEFECTS.includes(code) || (code === FORBIDDEN && !graph.token.renews)) throw closedBy(broken);
      refused = code === FORBIDDEN ? token : undefined;
      if (openedAt === Number.POSITIVE_INFINITY) tell(whyBroken(broken));
      if (clock.monotonic() - openedAt > STEADY_MS) retries = 0;
    }
    await clock.sleep(Math.min(250 * 2 ** retries, LONGEST_WAIT_MS));
  }
}

/** A socket of `ws`, which otherwise waits for a silent gateway for ever, and ends the process where it is left while it connects. */
class HeardSocket extends WebSocket {
  constructor(url: string, protocol: string) {
    super(url, protocol, { handshakeTimeout: CONNECT_MS });
    this.on('error', () => undefined);
  }
}

/**
 * Yields what one connection brings, and last what has broken it, if anything has. graphql-ws connects again by itself too, but not
 * after each code after which the gateway wants clients back, and it takes the late end of one socket for the end of the next.
 */
async function* overSocket(
  url: string,
  token: string,
  operation: SubscribePayload,
  onOpen: () => void,
): AsyncGenerator<Heard, void> {
  let hear: ((heard: Heard) => void) | undefined;
  let overdue: Timer | undefined;
  const client = createClient({
    url: url.replace(/^http/, 'ws'),
    webSocketImpl: HeardSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    connectionAckWaitTimeout: CONNECT_MS,
    retryAttempts: 0,
    keepAlive: PING_EVERY_MS,
    on: {
      connected: onOpen,
      ping: (isReceived, payload) => {
        if (!isReceived) overdue = clock.setTimeout(() => client.terminate(), PONG_WITHIN_MS);
        // The socket has one operation.
        for (const bookmark of Object.values(Ping.safeParse(payload).data?.bookmarks ?? {}))
          hear?.({ bookmark });
      },
      pong: (isReceived) => isReceived && clock.clearTimeout(overdue),
      closed: () => clock.clearTimeout(overdue),
    },
  });
  // One queue, so that no bookmark overtakes an event. When its reader has gone, the client still tells of the socket that is closed for that.
  const queue = new ReadableStream<Heard>({
    start(controller) {
      const end = (last?: Heard) => {
        if (hear === undefined) return;
        hear = undefined;
        if (last !== undefined) controller.enqueue(last);
        controller.close();
      };
      hear = (heard) => {
        controller.enqueue(heard);
        if ((controller.desiredSize ?? 0) > -MOST_WAITING) return;
        end({ broken: new Error('more waits than may') });
        client.terminate();
      };
      client.subscribe(operation, {
        next: ({ data, errors = [] }) => hear?.(stepOf(data, errors)),
        error: (cause) => end(Array.isArray(cause) ? { failures: cause } : { broken: cause }),
        complete: () => end(),
      });
    },
    cancel() {
      hear = undefined;
    },
  });
  try {
    yield* queue;
  } finally {
    client.terminate();
  }
}

const stepOf = (data: unknown, errors: readonly GraphFailure[]): Step =>
  errors.length === 0 || areUnread(data, errors) ? { data, unread: errors } : { failures: errors };

function closedBy(cause: unknown): CommandError {
  const closed = Closed.safeParse(cause).data;
  const reason = closed === undefined ? String(cause) : `${closed.code} ${closed.reason}`;
  return new CommandError(`The gateway closed the stream: ${reason}`, { cause });
}

/** Says what has kept a connection from coming about. */
function whyBroken(cause: unknown): string {
  if (Closed.safeParse(cause).success) return `${closedBy(cause).message.trim()}.`;
  const error = Failed.safeParse(cause).data?.error ?? cause;
  return `The WebSocket cannot be opened: ${reasonOf(error)}.`;
}

/** The close code for a caller that the gateway does not know, or no longer knows. */
const FORBIDDEN = 4403;
/** The close codes that the same client gets again (PROTOCOL.md, "What ends a stream"). */
const DEFECTS: readonly unknown[] = [1007, 1009, 4400, 4401, 4406, 4409, 4429];
const Closed = z.object({ code: z.number(), reason: z.string() });
/** The event of a socket that fails. */
const Failed = z.object({ error: z.instanceof(Error) });
const Ping = z.object({ bookmarks: z.record(z.string(), z.string()) });
