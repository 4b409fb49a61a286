import { createHash } from 'node:crypto';

/** The mutations that move money. */
export const MONEY_MUTATIONS = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
] as const;
export type MoneyMutation = (typeof MONEY_MUTATIONS)[number];

/** Whether the same may be sent again: the upstream has a key for money out, and for nothing else (docs/upstream-api.md, endpoint 11). */
export const isRepeatable = (mutation: MoneyMutation): boolean => mutation === 'createMoneyOut';

/** One caller's wish to move money once, under the key that names it. */
export interface MoneyIntent {
  readonly mutation: MoneyMutation;
  readonly clientId: string;
  /** The customer that the caller is narrowed to; undefined for the client itself. Each has keys of its own. */
  readonly customerId: string | undefined;
  /**
   * Who owns the key among those who act for the same client or customer: in service mode whom the token names. Undefined where
   * nobody is told apart.
   */
  readonly keyOwner: string | undefined;
  /** The caller's `idempotencyKey`, as {@link isIdempotencyKey} wants it. */
  readonly key: string;
  /** {@link inputHash} of what the caller asked for. It tells a repeat from another use of the key. */
  readonly inputHash: string;
  /** The JSON text of the upstream request. Its UTF-8 bytes are what leaves, the first time and every time. */
  readonly body: string;
  /** What a list of payments shows of it besides. */
  readonly shown: Shown;
  /** Of the request that asks for it; undefined where nobody does. */
  readonly requestId?: string | undefined;
}

/** What {@link MoneyIntent} says of itself to people. */
export interface Shown {
  /** Pesos, with two decimals; null for a refund that names none. */
  readonly amount: string | null;
  /** Ids of instruments; null for a refund. */
  readonly source: string | null;
  readonly destination: string | null;
  /** Who asks: a subject, or a digest of the credential. */
  readonly requestedBy: string;
}

/** The name of an intent's record. It holds a hash of the caller's key, never the key. */
export interface RecordName {
  readonly clientId: string;
  /** SHA-256 over client, customer and key, base64url. */
  readonly hash: string;
}

/** Whether a caller's key is 8 to 128 printable characters (code points; space counts, controls and line breaks do not). */
export function isIdempotencyKey(key: string): boolean {
  return /^[^\p{Control}\p{Format}\p{Surrogate}\p{Unassigned}\p{Private_Use}\p{Line_Separator}\p{Paragraph_Separator}]{8,128}$/u.test(
    key,
  );
}

/**
 * SHA-256, base64url, of a mutation and its input. The order of an object's fields does not matter, and a field that is
 * undefined is a field that is absent.
 *
 * @param input plain JSON values: what the caller gave, without its idempotency key.
 */
export function inputHash(mutation: MoneyMutation, input: unknown): string {
  return sha256(JSON.stringify([mutation, input], withSortedFields));
}

/**
 * The name under which an intent is recorded: the same for every process and every repeat.
 *
 * Versions before knew no owner of a key. So the first owner that uses a key gets the name that they would give it, and they and
 * this version find each other's records; a second owner of the same key has a name of its own, by its digest.
 *
 * @param ownerDigest undefined for the first name
 */
export function recordName(
  { clientId, customerId, key }: Pick<MoneyIntent, 'clientId' | 'customerId' | 'key'>,
  ownerDigest?: string,
): RecordName {
  const owned = ownerDigest === undefined ? [] : [ownerDigest];
  return { clientId, hash: sha256(JSON.stringify([clientId, customerId ?? null, key, ...owned])) };
}

/** What a record holds of its key's owner: a digest, empty where there is none. */
export const ownerDigest = ({ clientId, keyOwner }: Pick<MoneyIntent, 'clientId' | 'keyOwner'>): string =>
  keyOwner === undefined ? '' : sha256(JSON.stringify([clientId, keyOwner]));

/** The same for all callers of a client that send one input under one key, whoever they act for. */
export const twinOf = ({ clientId, key, inputHash }: MoneyIntent): string =>
  sha256(JSON.stringify([clientId, key, inputHash]));

function withSortedFields(_field: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
