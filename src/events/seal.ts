import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { entropy } from '../common/entropy.ts';
import { CursorInvalidError } from './errors.ts';

/** Bytes of a key. */
export const SEAL_KEY_BYTES = 32;

const CIPHER = 'aes-256-gcm';
const VERSION = 2;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + IV_BYTES + TAG_BYTES;
/**
 * The text is padded to a multiple of this before it is sealed. Its length would otherwise tell how many digits a position
 * has.
 */
const BLOCK_BYTES = 128;
/** No cursor fills a third block. */
const MAX_CHARACTERS = 400;

/** The client and customer that a cursor is sealed for. */
export interface SealHolder {
  /** The log's own ({@link EventLog.sealKey}). */
  readonly key: Buffer;
  readonly clientId: string;
  readonly customerId: string;
}

/**
 * Seals a cursor (AES-256-GCM; client and customer are authenticated with it). The text tells nothing of the position, not
 * even whether it is later than another, and only a holder of the key can make one.
 *
 * @param how `stable` gives the same text for the same position, so that an event keeps its cursor however often it is read.
 * `fresh` gives another text each time. It is for a position that is not an event of the holder's: a text that changes only
 * when the position moves would tell of others' events.
 */
export function sealCursor(holder: SealHolder, cursor: string, how: 'stable' | 'fresh'): string {
  const plain = Buffer.from(cursor, 'base64url');
  const padded = Buffer.alloc(Math.ceil((plain.length + 1) / BLOCK_BYTES) * BLOCK_BYTES);
  plain.copy(padded);
  // A byte that is not zero ends the text, so that the padding of zeros can be told from it.
  padded[plain.length] = 1;
  const bound = bindingOf(holder);
  // An initialisation vector that is derived from the plain text is never used for another text.
  const iv =
    how === 'stable'
      ? createHmac('sha256', holder.key).update(bound).update(padded).digest().subarray(0, IV_BYTES)
      : entropy.bytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, holder.key, iv, { authTagLength: TAG_BYTES }).setAAD(bound);
  const sealed = Buffer.concat([cipher.update(padded), cipher.final()]);
  return Buffer.concat([Buffer.from([VERSION]), iv, cipher.getAuthTag(), sealed]).toString('base64url');
}

/**
 * Returns the cursor inside a sealed one.
 *
 * @throws {CursorInvalidError} for any text that was not sealed with this key for this holder
 */
export function openCursor(holder: SealHolder, sealed: string): string {
  const bytes = Buffer.from(sealed.slice(0, MAX_CHARACTERS), 'base64url');
  // Buffer skips characters that are not base64url, so the text is compared with what sealCursor writes.
  if (bytes.length <= HEAD_BYTES || bytes[0] !== VERSION || bytes.toString('base64url') !== sealed) {
    throw new CursorInvalidError();
  }
  const iv = bytes.subarray(1, 1 + IV_BYTES);
  const decipher = createDecipheriv(CIPHER, holder.key, iv, { authTagLength: TAG_BYTES })
    .setAAD(bindingOf(holder))
    .setAuthTag(bytes.subarray(1 + IV_BYTES, HEAD_BYTES));
  try {
    const padded = Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]);
    return padded.subarray(0, padded.lastIndexOf(1)).toString('base64url');
  } catch {
    throw new CursorInvalidError();
  }
}

const bindingOf = ({ clientId, customerId }: SealHolder): Buffer => Buffer.from(`${clientId}|${customerId}`);
