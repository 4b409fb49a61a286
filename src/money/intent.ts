import { createHash } from 'node:crypto';

/** The mutations that move money. */
export const MONEY_MUTATIONS = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
] as const;
export type MoneyMutation = (typeof MONEY_MUTATIONS)[number];

/**
 * True if the same request may be sent again. The upstream has a key for money out, and for nothing else
 * (docs/upstream-api.md, endpoint 11).
 */
export const isRepeatable = (mutation: MoneyMutation): boolean => mutation === 'createMoneyOut';

/** One caller's wish to move money once, under the key that names it. */
export interface MoneyIntent {
  readonly mutation: MoneyMutation;
  readonly clientId: string;
  /** The customer that the caller is narrowed to; undefined for the client itself. Each has keys of its own. */
  readonly customerId: string | undefined;
  /**
   * Who owns the key among callers for the same client or customer: in service mode the token's subject. Undefined if callers
   * are not told apart.
   */
  readonly keyOwner: string | undefined;
  /** The caller's `idempotencyKey`, as {@link isIdempotencyKey} wants it. */
  readonly key: string;
  /** {@link inputHash} of what is asked for. It tells a repeat from another use of the key. */
  readonly inputHash: string;
  /** The JSON text of the upstream request. Its UTF-8 bytes are sent, the first time and every time. */
  readonly body: string;
  /** Further fields that a list of payments shows. */
  readonly shown: Shown;
  /** Id of the request that asks for it; undefined if there is none. */
  readonly requestId?: string | undefined;
}

/** The fields of a {@link MoneyIntent} that people are shown. */
export interface Shown {
  /** Pesos, with two decimals; null for a refund that names none. */
  readonly amount: string | null;
  /** Ids of instruments; null for a refund. */
  readonly source: string | null;
  readonly destination: string | null;
  /** The caller: a subject, or a digest of the credential. */
  readonly requestedBy: string;
}

/** The name of an intent's record. It holds a hash of the caller's key, never the key. */
export interface RecordName {
  readonly clientId: string;
  /** SHA-256 over client, customer and key, and the digest of a second owner ({@link recordName}); base64url. */
  readonly hash: string;
}

/**
 * True if a caller's key has 8 to 128 printable characters (code points; spaces count, controls and line breaks are refused).
 */
export function isIdempotencyKey(key: string): boolean {
  return /^[^\p{Control}\p{Format}\p{Surrogate}\p{Unassigned}\p{Private_Use}\p{Line_Separator}\p{Paragraph_Separator}]{8,128}$/u.test(
    key,
  );
}

/**
 * Returns the SHA-256, in base64url, of a mutation and what it asks the service for. The order of an object's fields does not matter, and an
 * undefined field counts as absent. A null counts.
 *
 * @param request the body of the REST request, in plain JSON values; of a refund also its subject, the credit, which the body does not name.
 */
export function inputHash(mutation: MoneyMutation, request: unknown): string {
  return sha256(JSON.stringify([mutation, request], withSortedFields));
}

/**
 * Returns the name under which an intent is recorded. It is the same in every process and for every repeat.
 *
 * Earlier versions knew no owner of a key. So the first owner of a key gets the name that they would use, and they and this
 * version find each other's records. A second owner of the same key gets a name of its own, by its digest.
 *
 * @param ownerDigest undefined for the first owner
 */
export function recordName(
  { clientId, customerId, key }: Pick<MoneyIntent, 'clientId' | 'customerId' | 'key'>,
  ownerDigest?: string,
): RecordName {
  const owned = ownerDigest === undefined ? [] : [ownerDigest];
  return { clientId, hash: sha256(JSON.stringify([clientId, customerId ?? null, key, ...owned])) };
}

/** Returns what a record holds of its key's owner: a digest, empty if callers are not told apart. */
export const ownerDigest = ({ clientId, keyOwner }: Pick<MoneyIntent, 'clientId' | 'keyOwner'>): string =>
  keyOwner === undefined ? '' : sha256(JSON.stringify([clientId, keyOwner]));

/**
 * Returns a text that is equal for all callers of a client that send the same input under the same key, whoever they act for.
 */
export const twinOf = ({ clientId, key, inputHash }: MoneyIntent): string =>
  sha256(JSON.stringify([clientId, key, inputHash]));

function withSortedFields(_field: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
