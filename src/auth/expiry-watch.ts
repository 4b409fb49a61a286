import { Alarm, type AlarmClock, Alarms } from '../common/alarms.ts';
import { BELIEVED_MS, expired, isRefusal } from './credential-expiry.ts';

/** A socket, or a stream over SSE, whose credential may end. */
export interface Expiring {
  /**
   * When its credential ends, in milliseconds since the epoch; undefined while that is not known, and if the credential does
   * not say.
   */
  expiresAt: number | undefined;
  /** Called when it has ended. */
  expired(reason: Error): void;
}

/** Watches credentials, once for all sockets and streams that have the same. */
export interface ExpiryWatch {
  /**
   * Watches the credential of a socket or a stream from now on.
   *
   * @param identified the caller that the credential was found to stand for.
   */
  watch(holder: Expiring, authorization: string | undefined, identified: Identified): void;
  /** Whether a socket or a stream has this credential. */
  isWatched(authorization: string | undefined): boolean;
  /** The credential has ended: all that have it are told. */
  end(authorization: string | undefined): void;
  /**
   * The service has refused the credential for one operation: it is asked about at once, and all that have it are told if it has ended.
   * A refusal by one endpoint alone, or by a proxy for one call, must not end them. A 401 or a 403 to the question does, whoever gives it.
   *
   * @returns whether it has ended.
   */
  doubt(authorization: string | undefined): Promise<boolean>;
  /** The socket or the stream is gone. */
  leave(holder: Expiring, authorization: string | undefined): void;
}

/** The caller that a credential was found to stand for. */
interface Identified {
  /** When it ends, in milliseconds since the epoch; undefined when it does not say. */
  readonly expiresAt: number | undefined;
}

export interface ExpiryWatchOptions {
  readonly clock: AlarmClock;
  /**
   * Finds out again which caller a credential stands for. Rejects if it stands for none, or if that cannot be found out now.
   */
  identify(authorization: string | undefined): Promise<Identified>;
  /**
   * How often a credential with an end is asked about again before that, in milliseconds, as the identity provider may have dropped its key;
   * undefined for never.
   */
  readonly againMs?: number | undefined;
}

class Credential extends Alarm {
  readonly authorization: string | undefined;
  /** Most credentials have one socket or stream, which is stored without a set. */
  holders: Expiring | Set<Expiring>;
  expiresAt: number | undefined;
  readonly #isDue: (credential: Credential) => void;

  constructor(authorization: string | undefined, first: Expiring, isDue: (credential: Credential) => void) {
    super();
    this.authorization = authorization;
    this.holders = first;
    this.#isDue = isDue;
  }

  override ring(): void {
    this.#isDue(this);
  }

  get all(): readonly Expiring[] {
    return this.holders instanceof Set ? [...this.holders] : [this.holders];
  }

  add(holder: Expiring): void {
    holder.expiresAt = this.expiresAt;
    if (this.holders instanceof Set) this.holders.add(holder);
    else if (this.holders !== holder) this.holders = new Set([this.holders, holder]);
  }

  /** Returns true if it was the last one. */
  remove(holder: Expiring): boolean {
    if (!(this.holders instanceof Set)) return this.holders === holder;
    this.holders.delete(holder);
    return this.holders.size === 0;
  }
}

/** The same credential may be written in several ways: the scheme has no case, and a socket may send it with spaces behind it. */
const keyOf = (authorization: string | undefined): string | undefined =>
  authorization?.replace(/^bearer +/i, 'Bearer ').trimEnd();

/**
 * One timer serves all credentials. Those without an end are asked about once a minute, others every `againMs`, and a minute after a question
 * that got no answer.
 */
export const createExpiryWatch = (options: ExpiryWatchOptions): ExpiryWatch => new Credentials(options);

class Credentials implements ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  readonly #alarms: Alarms;
  readonly #watched = new Map<string | undefined, Credential>();
  /** The doubts under way: whether the credential has ended. */
  readonly #asking = new Map<string | undefined, Promise<boolean>>();

  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    this.#alarms = new Alarms(options.clock);
  }

  watch(holder: Expiring, authorization: string | undefined, identified: Identified): void {
    const watched = this.#watched.get(keyOf(authorization));
    if (watched !== undefined) {
      watched.add(holder);
      return;
    }
    const credential = new Credential(authorization, holder, (one) => this.#due(one));
    this.#watched.set(keyOf(authorization), credential);
    this.#found(credential, identified);
  }

  isWatched(authorization: string | undefined): boolean {
    return this.#watched.has(keyOf(authorization));
  }

  end(authorization: string | undefined): void {
    const credential = this.#watched.get(keyOf(authorization));
    if (credential !== undefined) this.#expire(credential, expired());
  }

  /** Finds out whether it holds, once for all who want to know meanwhile. */
  doubt(authorization: string | undefined): Promise<boolean> {
    const key = keyOf(authorization);
    const underWay = this.#asking.get(key);
    if (underWay !== undefined) return underWay;
    const asking = this.#ask(authorization).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  leave(holder: Expiring, authorization: string | undefined): void {
    const credential = this.#watched.get(keyOf(authorization));
    if (credential?.remove(holder) === true) this.#forget(credential);
  }

  #forget(credential: Credential): void {
    this.#alarms.clear(credential);
    this.#watched.delete(keyOf(credential.authorization));
  }

  #expire(credential: Credential, reason: Error): void {
    this.#forget(credential);
    for (const holder of credential.all) holder.expired(reason);
  }

  #found(credential: Credential, { expiresAt }: Identified): void {
    const { againMs = Number.POSITIVE_INFINITY } = this.#options;
    credential.expiresAt = expiresAt;
    for (const holder of credential.all) holder.expiresAt = expiresAt;
    this.#askIn(credential, expiresAt === undefined ? BELIEVED_MS : againMs);
  }

  /** Asks about it after so many milliseconds, or lets it end where that comes first. */
  #askIn(credential: Credential, ms: number): void {
    const askAt = this.#options.clock.now() + ms;
    this.#alarms.set(credential, Math.min(askAt, credential.expiresAt ?? Number.POSITIVE_INFINITY));
  }

  #due(credential: Credential): void {
    if (credential.expiresAt !== undefined && credential.expiresAt <= this.#options.clock.now()) {
      this.#expire(credential, expired());
      return;
    }
    // It may end before the question is answered.
    if (credential.expiresAt !== undefined) this.#alarms.set(credential, credential.expiresAt);
    // No doubt joins this: the service may have answered it before it refused the credential elsewhere.
    void this.#ask(credential.authorization);
  }

  async #ask(authorization: string | undefined): Promise<boolean> {
    try {
      const identified = await this.#options.identify(authorization);
      const credential = this.#watched.get(keyOf(authorization));
      if (credential !== undefined) this.#found(credential, identified);
      return false;
    } catch (error) {
      const credential = this.#watched.get(keyOf(authorization));
      if (isRefusal(error)) {
        if (credential !== undefined) this.#expire(credential, error);
        return true;
      }
      // Other errors say nothing of the credential. It is asked about again later.
      if (credential !== undefined) this.#askIn(credential, BELIEVED_MS);
      return false;
    }
  }
}
