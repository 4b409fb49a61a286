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
export function createExpiryWatch(options: ExpiryWatchOptions): ExpiryWatch {
  const { clock, identify, isRefusal, againMs = Number.POSITIVE_INFINITY } = options;
  const credentials = new Map<string | undefined, Credential>();
  const alarms = new Alarms(clock);

  const isWatched = (credential: Credential): boolean =>
    credentials.get(credential.authorization) === credential;

  function forget(credential: Credential): void {
    alarms.clear(credential);
    if (isWatched(credential)) credentials.delete(credential.authorization);
  }

  function expire(credential: Credential): void {
    forget(credential);
    for (const socket of credential.all) socket.expired();
  }

  function found(credential: Credential, { expiresAt }: Identified): void {
    if (!isWatched(credential)) return;
    credential.expiresAt = expiresAt;
    for (const socket of credential.all) socket.expiresAt = expiresAt;
    askIn(credential, expiresAt === undefined ? ASK_AGAIN_MS : againMs);
  }

  /** Asks about it after so many milliseconds, or lets it end where that comes first. */
  function askIn(credential: Credential, ms: number): void {
    alarms.set(credential, Math.min(clock.now() + ms, credential.expiresAt ?? Number.POSITIVE_INFINITY));
  }

  function due(credential: Credential): void {
    if (credential.expiresAt !== undefined && credential.expiresAt <= clock.now()) {
      expire(credential);
      return;
    }
    identify(credential.authorization).then(
      (identified) => found(credential, identified),
      (error: unknown) => {
        if (!isWatched(credential)) return;
        // Other errors say nothing of the credential. It is asked about again later.
        if (isRefusal(error)) expire(credential);
        else askIn(credential, ASK_AGAIN_MS);
      },
    );
  }

  return {
    watch(socket, authorization, identified) {
      const watched = credentials.get(authorization);
      if (watched !== undefined) {
        watched.add(socket);
        return;
      }
      const credential = new Credential(authorization, socket, due);
      credentials.set(authorization, credential);
      found(credential, identified);
    },
    end(authorization) {
      const credential = credentials.get(authorization);
      if (credential !== undefined) expire(credential);
    },
    leave(socket, authorization) {
      const credential = credentials.get(authorization);
      if (credential?.remove(socket) === true) forget(credential);
    },
  };
}
