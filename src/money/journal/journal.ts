import { createHash } from 'node:crypto';
import type { RecordName } from '../intent.ts';
import { packed, packSummary, readSummary, unpacked } from '../order-summary.ts';
import type { OrderSummary, StoredAnswer } from '../record.ts';
import type { JournalLine } from './store.ts';

/** How long lines are kept, in ms, if `JOURNAL_RETENTION` is not set. */
export const JOURNAL_RETENTION_MS = 400 * 24 * 60 * 60 * 1000;

/**
 * A step of a payment. `nothing_moved` frees its key: nothing was sent, or the service turned it away before anything moved.
 * A payment with a line `sent` and no later line than `retried` is unknown. The step `unknown` says that nothing is sent
 * under its key any more.
 */
export type JournalStep = 'asked' | 'sent' | 'retried' | 'done' | 'refused' | 'unknown' | 'nothing_moved';

const LETTERS = {
  asked: 'a',
  sent: 's',
  retried: 'r',
  done: 'd',
  refused: 'f',
  unknown: 'u',
  nothing_moved: 'n',
} as const satisfies Readonly<Record<JournalStep, string>>;

/** By the first letter of a line. */
const STEPS: ReadonlyMap<string, JournalStep> = new Map(
  // The keys of LETTERS are steps.
  Object.entries(LETTERS).map(([step, letter]) => [letter, step as JournalStep]),
);

/** How many fields at the beginning of an `asked` line describe the order. */
const ASKED_FIELDS = 7;

/** Marks a line of what was found by evidence: no answer of the service came. */
const EVIDENCE = 'e';

/** Hexadecimal digits that are kept of a digest: 96 bits, as IPsec keeps of SHA-1. */
export const DIGEST_DIGITS = 24;

/**
 * Returns the digest of a line. It is SHA-1, because a script of Redis can compute no other. The digest of the line before
 * and the time of the store come first in the hash. Nobody knows them in advance, so nobody can have prepared two lines with
 * one digest. The known attacks on SHA-1 do not help to find another line for a given digest.
 */
export const digestOf = (previous: string, { id, text }: Pick<JournalLine, 'id' | 'text'>): string =>
  createHash('sha1').update(`${previous} ${id} ${text}`).digest('hex').slice(0, DIGEST_DIGITS);

/** Returns the two parts of an id: ms since the epoch, and the number within that millisecond. */
export const partsOf = (id: string): [number, number] => {
  const [ms, number] = id.split('-');
  return [Number(ms), Number(number)];
};

/** Returns the line that begins a payment. */
export const askedLine = (
  asked: OrderSummary,
  inputHash: string,
  { hash }: RecordName,
  requestId: string,
): string => LETTERS.asked + JSON.stringify([...packSummary(asked, inputHash), hash, packed(requestId)]);

/** Returns the part of an {@link askedLine} that `readSummary` reads. */
const askedIn = (text: string): string => text.slice(LETTERS.asked.length);

/** The parts of a later line of a payment. The store writes the payment's first line, or its hash, between the two. */
export interface NextLine {
  readonly letter: string;
  readonly rest: string;
}

export const sentLine: NextLine = { letter: LETTERS.sent, rest: '[]' };
export const nothingMovedLine: NextLine = { letter: LETTERS.nothing_moved, rest: '[]' };
export const retriedLine = (requestId: string): NextLine => ({
  letter: LETTERS.retried,
  rest: JSON.stringify([packed(requestId)]),
});
export const answeredLine = (
  { kind, status, by }: StoredAnswer,
  transactionId = '',
  code = '',
): NextLine => ({
  letter: LETTERS[kind],
  // Versions before read the first three.
  rest: JSON.stringify([status, code, packed(transactionId), ...(by === undefined ? [] : [EVIDENCE])]),
});

/** Returns the text of a later line of a payment. @param begun id of its first line; undefined if there is none */
export const nextLine = ({ letter, rest }: NextLine, begun: string | undefined, hash: string): string =>
  `${letter}${begun ?? `:${hash}`}${rest}`;

/** A line that has been parsed. Fields that it lacks are undefined. */
export interface ReadLine {
  readonly step: JournalStep;
  /** Id of the payment's first line; undefined for the first line itself, and if there is none. */
  readonly begun?: string | undefined;
  /** Of the record. */
  readonly hash?: string | undefined;
  readonly asked?: OrderSummary | undefined;
  readonly requestId?: string | undefined;
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly transactionId?: string | undefined;
  /** `evidence` where the service has not answered. */
  readonly by?: 'evidence' | undefined;
}

/** @returns undefined for a text that is no line of a journal */
export function readLine(text: string): ReadLine | undefined {
  const step = STEPS.get(text.slice(0, 1));
  if (step === undefined) return undefined;
  try {
    return step === 'asked' ? readAskedLine(text) : readNextLine(step, text);
  } catch {
    return undefined;
  }
}

function readAskedLine(text: string): ReadLine | undefined {
  const list = askedIn(text);
  const asked = readSummary(list, undefined);
  if (asked === null) return undefined;
  const [hash, requestId]: unknown[] = JSON.parse(list).slice(ASKED_FIELDS);
  return { step: 'asked', hash: String(hash), asked, requestId: unpacked(String(requestId)) };
}

function readNextLine(step: JournalStep, text: string): ReadLine | undefined {
  const [, begun, hash, rest = ''] = /^.(?:(\d+-\d+)|:([\w-]+))(\[.*\])$/.exec(text) ?? [];
  if (begun === undefined && hash === undefined) return undefined;
  const told: unknown[] = JSON.parse(rest);
  if (step === 'retried') return { step, begun, hash, requestId: unpacked(String(told[0])) };
  if (told.length === 0) return { step, begun, hash };
  const [status, code, transactionId, mark] = told;
  const isEvidence = mark === EVIDENCE;
  return {
    step,
    begun,
    hash,
    // The status in the record is that of the reading.
    status: isEvidence ? undefined : Number(status),
    by: isEvidence ? 'evidence' : undefined,
    code: unlessEmpty(code),
    transactionId: unlessEmpty(transactionId),
  };
}

const unlessEmpty = (value: unknown): string | undefined =>
  value === '' ? undefined : unpacked(String(value));
