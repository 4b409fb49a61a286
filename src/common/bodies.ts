import type { IncomingMessage } from 'node:http';
import { clock } from './clock.ts';
import { afterLastPiece } from './time-limit.ts';

/** The result of reading a body. */
export type Body =
  /** The whole body. Its bytes count against the bounds until `release` is called. */
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly release: () => void }
  /** The body is too long. `bytes` is its beginning, at least one byte more than allowed. */
  | { readonly kind: 'too-large'; readonly bytes: Buffer }
  | { readonly kind: 'too-slow' }
  /** There is no room: for all bodies, or for those with the same key. */
  | { readonly kind: 'full'; readonly whose: 'all' | 'own' }
  /** The sender went away. */
  | { readonly kind: 'gone' };

export interface BodyLimits {
  /** Bytes of all bodies together. */
  readonly total: number;
  /** Of these, bytes of senders that nobody has verified. */
  readonly strangers: number;
  /** Bytes of bodies with one key. */
  readonly perKey: number;
}

export interface BodyRequest {
  /** The sender. Bodies with the same key share the bound of one sender. */
  readonly key: string;
  /** True if its sender was verified. */
  readonly isKnown: boolean;
  /** The longest body, in bytes. */
  readonly maxBytes: number;
  /** How long its sender may take, in milliseconds; undefined for as long as the server allows. */
  readonly deadlineMs?: number;
}

/** Memory that a chunk takes besides its bytes. A body may come in chunks of one byte. */
const PIECE_BYTES = 128;

/**
 * Reads bodies, and bounds the memory of those under way. Only bytes that have arrived count: announcing a long body costs
 * its sender nothing, and takes nothing from others. A body counts from its first byte until it is released.
 */
export class Bodies {
  readonly #limits: BodyLimits;
  readonly #held = new Map<string, number>();
  #total = 0;
  #strangers = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#total;
  }

  /** Reads a body as far as it may go. Never rejects. */
  read(request: IncomingMessage, { key, isKnown, maxBytes, deadlineMs }: BodyRequest): Promise<Body> {
    return new Promise((resolve) => {
      const pieces: Buffer[] = [];
      let length = 0;
      let held = 0;
      let isOver = false;
      const release = (): void => {
        this.#count(key, isKnown, -held);
        held = 0;
      };
      const finish = (body: Body): void => {
        // The connection of a whole body is closed later.
        if (isOver) return;
        isOver = true;
        clock.clearTimeout(timer);
        if (body.kind !== 'whole') {
          request.off('data', take).off('end', end).off('close', leave);
          release();
        }
        pieces.length = 0;
        resolve(body);
      };
      const take = (piece: Buffer): void => {
        const bytes = piece.length + PIECE_BYTES;
        const whose = this.#lacks(key, isKnown, bytes);
        if (whose !== undefined) {
          finish({ kind: 'full', whose });
          return;
        }
        held += bytes;
        this.#count(key, isKnown, bytes);
        pieces.push(piece);
        length += piece.length;
        if (length > maxBytes) finish({ kind: 'too-large', bytes: Buffer.concat(pieces) });
      };
      const end = (): void => {
        const [only] = pieces;
        const bytes = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
        finish({ kind: 'whole', bytes, release });
      };
      const leave = (): void => finish({ kind: 'gone' });
      const tooSlow = (): void => finish({ kind: 'too-slow' });
      const isLate = (): void => afterLastPiece(() => length, tooSlow);
      const timer = deadlineMs === undefined ? undefined : clock.setTimeout(isLate, deadlineMs);
      // A connection that breaks off reports an error first. Later errors are ignored.
      request.on('error', ignore).on('data', take).on('end', end).on('close', leave);
      if (request.destroyed) leave();
    });
  }

  #lacks(key: string, isKnown: boolean, bytes: number): 'all' | 'own' | undefined {
    const { total, strangers, perKey } = this.#limits;
    if ((this.#held.get(key) ?? 0) + bytes > perKey) return 'own';
    if (this.#total + bytes > total) return 'all';
    return !isKnown && this.#strangers + bytes > strangers ? 'all' : undefined;
  }

  #count(key: string, isKnown: boolean, bytes: number): void {
    if (bytes === 0) return;
    this.#total += bytes;
    if (!isKnown) this.#strangers += bytes;
    const held = (this.#held.get(key) ?? 0) + bytes;
    if (held > 0) this.#held.set(key, held);
    else this.#held.delete(key);
  }
}

const ignore = (): void => undefined;
