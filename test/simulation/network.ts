import { request as httpRequest, Server } from 'node:http';
import { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { answerOf } from './answer.ts';
import type { Chance } from './chance.ts';
import { Broken, currentProcess, type Process, type Simulation } from './core.ts';

/** How a process and the others are connected. */
export interface Weather {
  /** Milliseconds of a way, at least and at most. */
  latency: readonly [number, number];
  /** Processes whose bytes get nowhere, and who are told nothing of it. */
  readonly cut: Set<string>;
}

interface Piece {
  readonly chunk: Buffer | null;
  /** Whether the connection is forgotten once this has arrived. */
  readonly isLast: boolean;
  readonly done: (error?: Error | null) => void;
}

/** One end of a connection in memory. */
class End extends Duplex {
  readonly owner: Process | undefined;
  readonly remoteAddress: string;
  readonly remotePort = 40_000;
  peer: End | undefined;
  #arrivesAt = 0;
  #held: Piece[] = [];
  #isFull = false;
  /** Something on the way has forgotten the connection: nothing gets through, and nobody is told. */
  isForgotten = false;
  #unread: (() => void) | undefined;
  readonly #network: Network;
  #idle: { cancel(): void } | undefined;

  constructor(network: Network, owner: Process | undefined, remoteAddress: string) {
    super({ highWaterMark: 64 * 1024 });
    this.#network = network;
    this.owner = owner;
    this.remoteAddress = remoteAddress;
  }

  override _read(): void {
    this.#isFull = false;
    const unread = this.#unread;
    this.#unread = undefined;
    unread?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#post({ chunk, isLast: this.#network.isLast(this, chunk), done });
    this.#network.answered(this.owner, chunk);
  }

  /** What was written in one go leaves in one piece, as from a socket. */
  override _writev(
    pieces: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this._write(Buffer.concat(pieces.map(({ chunk }) => chunk)), 'buffer', done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#post({ chunk: null, isLast: false, done });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#idle?.cancel();
    const { peer } = this;
    if (peer !== undefined && !peer.destroyed && !this.isForgotten) {
      this.#network.later(peer.owner, this.owner, () => {
        if (!peer.destroyed && !this.isForgotten)
          peer.destroy(this.readableEnded || this.writableFinished ? undefined : reset());
      });
    }
    done(error);
  }

  #post(piece: Piece): void {
    const { sim } = this.#network;
    this.#arrivesAt = Math.max(this.#arrivesAt, sim.now + this.#network.latency());
    // Nobody's: where the process at the other end has ended, its system refuses what arrives.
    sim.after(this.#arrivesAt - sim.now, undefined, () => {
      this.#held.push(piece);
      this.flush();
    });
  }

  /** Hands over what has arrived, unless the way is cut: then later, in the same order. */
  flush(): void {
    const { peer } = this;
    if (this.isForgotten) return;
    while (this.#held.length > 0 && peer !== undefined && !this.#network.isCut(this.owner, peer.owner)) {
      if (peer.#isFull && !peer.destroyed) {
        peer.#unread ??= () => this.flush();
        return;
      }
      const piece = this.#held.shift();
      if (peer.destroyed) this.#network.told(this.owner, () => piece?.done(reset()));
      else {
        // What was sent before the connection stood arrives with it, and is taken by the process at this end all the same.
        if (piece !== undefined)
          this.#network.told(peer.owner, () => {
            peer.#isFull = !peer.push(piece.chunk) && piece.chunk !== null;
          });
        if (!this.destroyed) this.#network.told(this.owner, () => piece?.done());
      }
      if (piece?.isLast === true) {
        this.isForgotten = true;
        peer.isForgotten = true;
        return;
      }
    }
  }

  // What Node's HTTP expects of a socket.
  setTimeout(ms: number, listener?: () => void): this {
    this.#idle?.cancel();
    if (ms > 0)
      this.#idle = this.#network.sim.after(ms, this.owner, () => this.destroyed || this.emit('timeout'));
    if (listener !== undefined) this.once('timeout', listener);
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

const failure = (call: string, code: string): Error => Object.assign(new Error(`${call} ${code}`), { code });
const reset = (): Error => failure('read', 'ECONNRESET');

/** Whether the last of these frames closes a WebSocket. What was written in one go are whole frames, or HTTP. */
function closes(chunk: Buffer): boolean {
  let at = 0;
  let opcode = 0;
  while (at + 2 <= chunk.length) {
    const [first = 0, second = 0] = chunk.subarray(at);
    if ((first & RESERVED_BITS) !== 0) return false;
    opcode = first & 0x0f;
    const short = second & 0x7f;
    const length = short < 126 ? 0 : short === 126 ? 2 : 8;
    const size =
      length === 0 ? short : chunk.readUIntBE(at + 2 + (length === 8 ? 2 : 0), length === 8 ? 6 : 2);
    at += 2 + length + (second > 0x7f ? MASK_BYTES : 0) + size;
  }
  return opcode === CLOSE;
}

/** Of a frame without compression none of these is set; of the letter that HTTP begins with one is. */
const RESERVED_BITS = 0x70;
const MASK_BYTES = 4;
const CLOSE = 8;
/** A browser waits for ever for the end of a WebSocket that is closing. No timer is set for longer than this, in ms. */
const FOR_EVER_MS = 2 ** 31 - 1;

/** The network between apps, gateways and the REST service: connections in memory, over which real HTTP and WebSocket bytes go. */
export class Network {
  readonly sim: Simulation;
  readonly weather: Weather = { latency: [0.5, 20], cut: new Set() };
  readonly #chance: Chance;
  readonly #servers = new Map<string, { readonly server: Server; readonly process: Process | undefined }>();
  readonly #ends = new Set<End>();
  readonly #endings = new WeakMap<Process, string>();
  /** Processes each of whose WebSockets is forgotten on its way as soon as one end has been told that the other closes it. */
  readonly forgottenAsTheyClose = new Set<string>();
  /** Until when a process may connect whose app has closed everything. */
  readonly mayConnectUntil = new WeakMap<Process, number>();
  connections = 0;
  /** How many of them are WebSockets, or streams of events. */
  streams = 0;

  constructor(sim: Simulation) {
    this.sim = sim;
    this.#chance = sim.chance('network');
  }

  latency(): number {
    return this.#chance.between(...this.weather.latency);
  }

  isCut(one: Process | undefined, other: Process | undefined): boolean {
    const { cut } = this.weather;
    return (one !== undefined && cut.has(one.name)) || (other !== undefined && cut.has(other.name));
  }

  /** Lets one process learn something of another, unless the way between them is cut by then: then it never does. */
  later(who: Process | undefined, of: Process | undefined, work: () => void): void {
    this.sim.after(this.latency(), who, () => {
      if (!this.isCut(who, of)) work();
    });
  }

  /** Lets a process learn something now. */
  told(who: Process | undefined, work: () => void): void {
    if (who === undefined) work();
    else if (who.isAlive) who.run(work);
  }

  /** The way is free again: what was held up arrives. */
  mend(name: string): void {
    this.weather.cut.delete(name);
    for (const end of this.#ends) {
      const { peer } = end;
      if (peer !== undefined) this.sim.after(this.latency(), undefined, () => end.flush());
    }
  }

  /** Ends a process as soon as it has written something with these bytes. */
  endAfter(process: Process, bytes: string): void {
    this.#endings.set(process, bytes);
  }

  /** Lets a process go on that was to end so. */
  spare(process: Process): void {
    this.#endings.delete(process);
  }

  /** Told of all that a process writes. */
  answered(process: Process | undefined, chunk: Buffer): void {
    const bytes = process && this.#endings.get(process);
    if (process === undefined || bytes === undefined || !chunk.includes(bytes)) return;
    this.#endings.delete(process);
    this.sim.after(0, undefined, () => process.kill());
  }

  /** Whether a connection is to be forgotten once these bytes have arrived. */
  isLast({ owner, peer }: End, chunk: Buffer): boolean {
    const names = [owner?.name, peer?.owner?.name];
    return names.some((name) => this.forgottenAsTheyClose.has(name ?? '')) && closes(chunk);
  }

  /** All connections of a process are forgotten on their way; it may make others. */
  forget(name: string): void {
    for (const end of this.#ends) {
      if (end.owner?.name !== name && end.peer?.owner?.name !== name) continue;
      end.isForgotten = true;
      if (end.peer !== undefined) end.peer.isForgotten = true;
    }
  }

  /** The systems at both ends of what was forgotten give it up, as they do after a quarter of an hour. */
  giveUpForgotten(): void {
    for (const end of this.#ends) if (end.isForgotten) this.told(end.owner, () => end.destroy(reset()));
  }

  /** Closes the connections of those whom nobody has killed: Node's parsers keep them, and with them the whole run. */
  end(): void {
    for (const end of this.#ends) end.destroy();
  }

  listen(address: string, server: Server): void {
    const process = currentProcess();
    const listening = { server, process };
    this.#servers.set(address, listening);
    const leave = (): void => {
      if (this.#servers.get(address) === listening) this.#servers.delete(address);
    };
    process?.atEnd(() => {
      leave();
      // Node's server looks after its connections by a timer that would keep the whole process.
      server.removeAllListeners();
      Server.prototype.close.call(server);
    });
    // Node's own would complain that it does not listen.
    server.close = (done?: (error?: Error) => void) => {
      leave();
      queueMicrotask(() => done?.());
      return server;
    };
  }

  /** A connection from the process that runs now. */
  connect(address: string): End {
    const from = currentProcess();
    const near = new End(this, from, address);
    const { server, process } = this.#servers.get(address) ?? {};
    this.connections += 1;
    if (from !== undefined && this.sim.elapsed > (this.mayConnectUntil.get(from) ?? Number.POSITIVE_INFINITY))
      this.sim.fail(new Broken(`${from.name} connects, though its app has closed everything`));
    this.sim.say(`${from?.name} connects to ${address}`);
    near.once('close', () => this.sim.say(`${from?.name} has left ${address}`));
    /** As TCP does: a connection that nobody answers is asked for again, ever later, and given up after two minutes. */
    const attempt = (tries: number): void => {
      if (near.destroyed) return;
      if (this.isCut(from, process)) {
        if (tries < 7) this.sim.after(1_000 * 2 ** tries, undefined, () => attempt(tries + 1));
        else this.told(from, () => near.destroy(failure('connect', 'ETIMEDOUT')));
        return;
      }
      if (server === undefined || process?.isAlive === false || !server.listenerCount('request')) {
        this.later(from, process, () => near.destroy(failure('connect', 'ECONNREFUSED')));
        return;
      }
      const far = new End(this, process, `10.0.0.${1 + (from?.name.length ?? 0)}`);
      near.peer = far;
      far.peer = near;
      for (const end of [near, far]) {
        this.#ends.add(end);
        end.once('close', () => this.#ends.delete(end));
        end.owner?.atEnd(() => end.destroy());
      }
      this.told(process, () => server.emit('connection', far));
      this.later(from, process, () => near.emit('connect'));
      near.flush();
    };
    this.sim.after(this.latency(), undefined, () => attempt(0));
    near.on('error', () => {});
    return near;
  }

  /** `fetch` of the process that calls it, as far as the client uses it. */
  readonly fetch = (
    url: string,
    init: { method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal } = {},
  ): Promise<Response> => {
    const { protocol, host, pathname, search } = new URL(url);
    if (init.headers?.['accept'] === 'text/event-stream') this.streams += 1;
    return new Promise((resolve, reject) => {
      const { signal } = init;
      const sent = httpRequest({
        method: init.method ?? 'GET',
        path: pathname + search,
        headers: { host, ...init.headers, connection: 'close' },
        // Node asks for a socket; it uses no more of it than a Duplex has.
        createConnection: () => this.connect(`${protocol}//${host}`) as never,
      });
      const leave = (): void =>
        void sent.destroy(new DOMException('The operation was aborted', 'AbortError'));
      sent.on('error', reject);
      sent.on('response', (message) => resolve(answerOf(message)));
      if (signal?.aborted) leave();
      signal?.addEventListener('abort', leave, { once: true });
      sent.end(init.body);
    });
  };

  /** The WebSocket that clients are given. */
  socketClass(): typeof WebSocket {
    const network = this;
    return class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        const { host } = new URL(url);
        network.streams += 1;
        const options = {
          perMessageDeflate: false,
          // An option of ws that its types do not know yet.
          closeTimeout: FOR_EVER_MS,
          createConnection: (() => network.connect(`http://${host}`)) as never,
        };
        super(url, protocols, options);
      }
    } as typeof WebSocket;
  }
}
