import { createHash, createHmac } from 'node:crypto';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { clock } from '../common/clock.ts';
import { CommandError, remark } from './command.ts';
import { CursorFile } from './cursor-file.ts';
import { type Graph, GraphError, query, subscribe } from './graph.ts';

/** Events read from the gateway at a time. */
const PAGE = 100;
/** How long one delivery may take, in milliseconds. */
const TIMEOUT_MS = 30_000;
/** How long a connection may take: with the longest pause, how long after its return a receiver is noticed. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Pauses between attempts grow from the first to the longest, in milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2_500;
/** How long to wait for news before the log is looked at without any, in milliseconds. */
const LOOK_EVERY_MS = 4_000;

interface Forwarding {
  readonly graph: Graph;
  readonly types: readonly string[] | null;
  /** Where each event is posted to. */
  readonly to: string;
  /** The cursor to begin after where none was saved; null for what comes from now on. */
  readonly from: string | null;
  /** What deliveries are signed with. */
  readonly secret: string;
  /** Where the cursor is saved. */
  readonly stateFile: string;
  /** Whether an error of the graph stays, however long one waits. */
  readonly isFinal: (code: string) => boolean;
}

/** The file that holds the cursor of one receiver. */
export const stateFileOf = (folder: string, to: string): string =>
  join(folder, `forward-${createHash('sha256').update(to).digest('hex').slice(0, 12)}.cursor`);

/**
 * The header of a delivery: `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>", in hexadecimal>`. With the time under the
 * signature, a receiver can refuse what somebody has recorded and sends again.
 */
function signatureOf(secret: string, seconds: number, body: string): string {
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

const PARTY = '{ account name rfc }';
const DOCUMENT = `query ($types: [EventType!], $after: Cursor, $first: Int) {
  events(types: $types, after: $after, first: $first) {
    nodes {
      __typename id type cursor receivedAt
      ... on MoneyInEvent {
        messageDate transactionId subCategory rawSubCategory amount { amount currency } beneficiary ${PARTY} payer ${PARTY}
        payerInstitution trackingKey paymentConcept numericReference transactionDate registeredAt ownerId decision refundReason
      }
      ... on CepEvent {
        messageDate bodyId status rawStatus trackingKey externalReference paymentConcept beneficiary ${PARTY} processedAt
      }
      ... on StatusUpdateEvent { payload }
    }
    pageInfo { hasNextPage endCursor }
  }
}`;
const NEWS = 'subscription ($types: [EventType!]) { events(types: $types) { id } }';

const Page = z.object({
  events: z.object({
    nodes: z.array(z.looseObject({ id: z.string(), cursor: z.string() })),
    pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
  }),
});
const Head = z.object({ eventCursor: z.string() });

/**
 * Posts each event to a receiver, in order and at least once: the cursor is saved once the receiver has answered with a 2xx.
 * Ends when the signal is aborted.
 *
 * @throws CommandError where events are missing, or the gateway refuses for good
 */
export async function forward(forwarding: Forwarding, signal: AbortSignal): Promise<void> {
  const state = new CursorFile(forwarding.stateFile);
  try {
    await forwardFrom(state, forwarding, signal);
  } finally {
    await state.close();
  }
}

async function forwardFrom(state: CursorFile, forwarding: Forwarding, signal: AbortSignal): Promise<void> {
  const { graph, types, to } = forwarding;
  let cursor = state.cursor ?? forwarding.from;
  if (cursor === null) {
    const { eventCursor } = Head.parse(await query(graph, '{ eventCursor }', {}));
    // What arrives from now on is to be forwarded, also when this process is killed before the first of it.
    cursor = eventCursor;
    state.save(cursor);
  }
  const news = new Bell();
  void listen(forwarding, news, signal);
  remark(`Forwarding events of ${graph.url} after ${cursor} to ${new URL(to).origin}. Ctrl-C ends it.`);
  for (const attempts = new Attempts(signal); !signal.aborted; ) {
    const heard = news.next();
    let page: z.output<typeof Page>['events'];
    let head: string | undefined;
    try {
      // Where events of other types alone have come, the place after them must be kept: the log is trimmed meanwhile.
      if (types !== null) head = Head.parse(await query(graph, '{ eventCursor }', {})).eventCursor;
      page = Page.parse(await query(graph, DOCUMENT, { types, after: cursor, first: PAGE })).events;
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (error instanceof GraphError && forwarding.isFinal(error.code)) throw error;
      await attempts.failed(error.message);
      continue;
    }
    attempts.succeeded();
    for (const event of page.nodes) {
      if (!(await deliver(forwarding, event, signal))) return;
      cursor = event.cursor;
      state.save(cursor);
    }
    const { hasNextPage, endCursor } = page.pageInfo;
    if (page.nodes.length > 0 || hasNextPage) {
      cursor = endCursor ?? cursor;
      continue;
    }
    if (head !== undefined && head !== cursor) {
      cursor = head;
      state.save(cursor);
    }
    await Promise.race([heard, rest(LOOK_EVERY_MS, signal)]);
  }
}

/** @returns false where it was given up because the signal is aborted. */
async function deliver(
  { to, secret }: Forwarding,
  event: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<boolean> {
  const body = JSON.stringify(event);
  for (const attempts = new Attempts(signal); !signal.aborted; ) {
    const problem = await post(to, body, signatureOf(secret, Math.floor(clock.now() / 1000), body));
    if (problem === undefined) return true;
    await attempts.failed(`${String(event['id'])} was not taken: ${problem}.`);
  }
  return false;
}

/** One connection: an event is posted once the one before has been answered. */
const receivers = new Agent({ connections: 1, connect: { timeout: CONNECT_TIMEOUT_MS } });

/** @returns undefined once the receiver has taken it, else what it did instead. */
async function post(to: string, body: string, signature: string): Promise<string | undefined> {
  try {
    // It follows no redirect: what is signed for one address is not handed to another.
    const { statusCode, body: answer } = await request(to, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'pasarela-signature': signature },
      body,
      signal: clock.timeoutSignal(TIMEOUT_MS),
      dispatcher: receivers,
    });
    await answer.dump();
    return statusCode >= 200 && statusCode < 300 ? undefined : `the receiver answered ${statusCode}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Rings at each event. What goes wrong here is told by the reading of the log, which happens without news too. */
async function listen({ graph, types }: Forwarding, news: Bell, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const step of subscribe(graph, NEWS, { types }, () => news.ring())) {
        if ('data' in step) news.ring();
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
    }
    await rest(LOOK_EVERY_MS, signal);
  }
}

/** Tells those who wait that something has happened since they began to. */
class Bell {
  #heard = Promise.withResolvers<void>();

  ring(): void {
    this.#heard.resolve();
    this.#heard = Promise.withResolvers();
  }

  next(): Promise<void> {
    return this.#heard.promise;
  }
}

/** Attempts at one thing, with growing pauses between them. The first failure is told, and the end of it. */
class Attempts {
  readonly #signal: AbortSignal;
  #failures = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async failed(problem: string): Promise<void> {
    if (this.#failures === 0) remark(`${problem} Trying again.`);
    await rest(Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS), this.#signal);
    this.#failures += 1;
  }

  succeeded(): void {
    this.#failures = 0;
  }
}

/** Ends early where the signal is aborted. */
const rest = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  clock.sleep(milliseconds, { signal }).catch(() => undefined);
