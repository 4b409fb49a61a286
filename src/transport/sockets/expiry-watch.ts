import { Alarm, type AlarmClock, Alarms } from '../../common/alarms.ts';

/** A socket whose credential may end. */
export interface ExpiringSocket {
  /**
   * When its credential ends, in milliseconds since the epoch; undefined while that is not known, and if the credential does
   * not say.
   */
  expiresAt: number | undefined;
  /** Called when it has ended. */
  expired(): void;
}

/** Watches the credentials of sockets, once for all sockets that have the same. */
export interface ExpiryWatch {
  /**
   * Watches the socket's credential from now on.
   *
   * @param identified the caller that the credential was found to stand for.
   */
  watch(socket: ExpiringSocket, authorization: string | undefined, identified: Identified): void;
  /** The credential has ended: all its sockets are told. */
  end(authorization: string | undefined): void;
  /**
   * The service has refused the credential for one operation: it is asked about at once, and all its sockets are told if it has ended.
   * A refusal by one endpoint alone, or by a proxy on the way, must not close them.
   *
   * @returns whether it has ended.
   */
  doubt(authorization: string | undefined): Promise<boolean>;
  /** The socket is gone. */
  leave(socket: ExpiringSocket, authorization: string | undefined): void;
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
  /** True if an error says that the credential is no longer valid. */
  isRefusal(error: unknown): boolean;
  /** How often a credential with an end is asked about again before that, in milliseconds; undefined for never. */
  readonly againMs?: number | undefined;
}

/** How often a credential without an end is asked about again, in milliseconds. */
const ASK_AGAIN_MS = 60_000;

class Credential extends Alarm {
  readonly authorization: string | undefined;
  /** Most credentials have one socket, which is stored without a set. */
  sockets: ExpiringSocket | Set<ExpiringSocket>;
  expiresAt: number | undefined;
  /** The question about it that is under way. */
  asking: Promise<void> | undefined;
  readonly #isDue: (credential: Credential) => void;

  constructor(
    authorization: string | undefined,
    first: ExpiringSocket,
    isDue: (credential: Credential) => void,
  ) {
    super();
    this.authorization = authorization;
    this.sockets = first;
    this.#isDue = isDue;
  }

  override ring(): void {
    this.#isDue(this);
  }

  get all(): readonly ExpiringSocket[] {
    return this.sockets instanceof Set ? [...this.sockets] : [this.sockets];
  }

  add(socket: ExpiringSocket): void {
    socket.expiresAt = this.expiresAt;
    if (this.sockets instanceof Set) this.sockets.add(socket);
    else if (this.sockets !== socket) this.sockets = new Set([this.sockets, socket]);
  }

  /** Returns true if it was the last one. */
  remove(socket: ExpiringSocket): boolean {
    if (!(this.sockets instanceof Set)) return this.sockets === socket;
    this.sockets.delete(socket);
    return this.sockets.size === 0;
  }
}

/** One timer serves the credentials of all sockets. Those without an end are asked about once a minute, others every `againMs`. */
export const createExpiryWatch = (options: ExpiryWatchOptions): ExpiryWatch => new Credentials(options);

class Credentials implements ExpiryWatch {
  readonly #options: ExpiryWatchOptions;
  readonly #alarms: Alarms;
  readonly #watched = new Map<string | undefined, Credential>();

  constructor(options: ExpiryWatchOptions) {
    this.#options = options;
    this.#alarms = new Alarms(options.clock);
  }

  watch(socket: ExpiringSocket, authorization: string | undefined, identified: Identified): void {
    const watched = this.#watched.get(authorization);
    if (watched !== undefined) {
      watched.add(socket);
      return;
    }
    const credential = new Credential(authorization, socket, (one) => this.#due(one));
    this.#watched.set(authorization, credential);
    this.#found(credential, identified);
  }

  end(authorization: string | undefined): void {
    const credential = this.#watched.get(authorization);
    if (credential !== undefined) this.#expire(credential);
  }

  async doubt(authorization: string | undefined): Promise<boolean> {
    const credential = this.#watched.get(authorization);
    if (credential === undefined) return true;
    await this.#ask(credential);
    return !this.#isWatched(credential);
  }

  leave(socket: ExpiringSocket, authorization: string | undefined): void {
    const credential = this.#watched.get(authorization);
    if (credential?.remove(socket) === true) this.#forget(credential);
  }

  #isWatched(credential: Credential): boolean {
    return this.#watched.get(credential.authorization) === credential;
  }

  #forget(credential: Credential): void {
    this.#alarms.clear(credential);
    if (this.#isWatched(credential)) this.#watched.delete(credential.authorization);
  }

  #expire(credential: Credential): void {
    this.#forget(credential);
    for (const socket of credential.all) socket.expired();
  }

  #found(credential: Credential, { expiresAt }: Identified): void {
    if (!this.#isWatched(credential)) return;
    const { againMs = Number.POSITIVE_INFINITY } = this.#options;
    credential.expiresAt = expiresAt;
    for (const socket of credential.all) socket.expiresAt = expiresAt;
    this.#askIn(credential, expiresAt === undefined ? ASK_AGAIN_MS : againMs);
  }

  /** Asks about it after so many milliseconds, or lets it end where that comes first. */
  #askIn(credential: Credential, ms: number): void {
    const askAt = this.#options.clock.now() + ms;
    this.#alarms.set(credential, Math.min(askAt, credential.expiresAt ?? Number.POSITIVE_INFINITY));
  }

  #due(credential: Credential): void {
    if (credential.expiresAt !== undefined && credential.expiresAt <= this.#options.clock.now()) {
      this.#expire(credential);
      return;
    }
    void this.#ask(credential);
  }

  /** Finds out whether it holds, once for all who want to know meanwhile. */
  #ask(credential: Credential): Promise<void> {
    credential.asking ??= this.#askNow(credential).finally(() => {
      credential.asking = undefined;
    });
    return credential.asking;
  }

  async #askNow(credential: Credential): Promise<void> {
    const { identify, isRefusal } = this.#options;
    try {
      this.#found(credential, await identify(credential.authorization));
    } catch (error) {
      if (!this.#isWatched(credential)) return;
      // Other errors say nothing of the credential. It is asked about again later.
      if (isRefusal(error)) this.#expire(credential);
      else this.#askIn(credential, ASK_AGAIN_MS);
    }
  }
}
