import { parseAsWritten } from '../common/long-numbers.ts';
import { encodeCursor } from './cursor.ts';
import type { Answer, MoneyInDecision, NewEvent, StoredEvent } from './log.ts';

/** An event with its link in the chain: `prev` is the position of the event before it, or the epoch for the first. */
export interface Entry {
  /** Names the life of the log in which it was read. */
  readonly epoch: string;
  readonly position: string;
  readonly prev: string;
  readonly event: StoredEvent;
  /** Length of the stored text, in UTF-16 code units: a measure of the memory that the entry takes. */
  readonly size: number;
}

/** A page of entries as one atomic read saw them. */
export interface Slice {
  readonly epoch: string;
  readonly entries: readonly Entry[];
  readonly hasMore: boolean;
  /** The position of the newest event, or the epoch, at the moment of reading. */
  readonly head: string;
}

/** How long after its latest delivery the log recognises a message, in milliseconds. */
export const SEEN_FOR_MS = 7 * 24 * 60 * 60 * 1000;

const DECISIONS: readonly MoneyInDecision[] = ['ACCEPTED', 'REJECTED', 'INFORMED'];

/** Returns the text in which an event is stored. The payload goes in as it came, so that no digit of it changes. */
export function encodeEvent(event: NewEvent): string {
  const { id, type, receivedAt, decision, refundReason, traceparent } = event;
  const rest = JSON.stringify({ id, type, receivedAt, decision, refundReason, traceparent });
  return `${rest.slice(0, -1)},"payload":${event.payload}}`;
}

/** Returns the event as readers will get it, without its cursor: its position is not known yet. */
export function unplaced(event: NewEvent): StoredEvent {
  const { id, type, receivedAt } = event;
  return { cursor: '', id, type, receivedAt, payload: JSON.parse(event.payload) };
}

/**
 * Reads what `encodeEvent` wrote, of this version or of a later one: the type may be one that this version does not know.
 *
 * @throws {Error} for any other text
 */
export function decodeEntry(
  clientId: string,
  epoch: string,
  link: { position: string; prev: string },
  text: string,
): Entry {
  const value = parseStored(text);
  if (!isRecord(value)) throw new Error('an event is stored as a JSON object');
  const { id, type, receivedAt, decision, refundReason, traceparent } = value;
  if (
    typeof id !== 'string' ||
    typeof receivedAt !== 'string' ||
    typeof type !== 'string' ||
    !('payload' in value)
  ) {
    throw new Error('a stored event has id, type, receivedAt and payload');
  }
  return {
    ...link,
    epoch,
    size: text.length,
    event: {
      cursor: encodeCursor(clientId, { epoch, position: link.position }),
      id,
      type,
      receivedAt,
      ...(isDecision(decision) ? { decision } : {}),
      ...(typeof refundReason === 'string' ? { refundReason } : {}),
      ...(typeof traceparent === 'string' ? { traceparent } : {}),
      payload: value['payload'],
    },
  };
}

/** Returns what the gateway answers to the delivery of an event once it is stored. */
export function answerOf(event: Pick<NewEvent, 'decision' | 'refundReason' | 'transactionId'>): Answer {
  const { decision, refundReason, transactionId } = event;
  return decision === 'REJECTED' ? { status: 422, refundReason, transactionId } : { status: 201 };
}

/** Reads an answer that is stored as JSON. Anything but a stored rejection becomes 201, because 422 refunds money. */
export function decodeAnswer(text: string): Answer {
  const value: unknown = JSON.parse(text);
  if (!isRecord(value) || value['status'] !== 422) return { status: 201 };
  const { refundReason, transactionId } = value;
  return {
    status: 422,
    ...(typeof refundReason === 'string' ? { refundReason } : {}),
    ...(typeof transactionId === 'string' ? { transactionId } : {}),
  };
}

/**
 * Parses the text of a stored event.
 *
 * @throws {Error} for a text that is not JSON
 */
export function parseStored(text: string): unknown {
  try {
    return parseAsWritten(text);
  } catch {
    // The parser's own message would quote the text, which holds personal data.
    throw new Error('an event is stored as JSON');
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isDecision(value: unknown): value is MoneyInDecision {
  return DECISIONS.some((decision) => decision === value);
}
