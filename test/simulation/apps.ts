import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket, type Socket } from '../../packages/client/src/graphql-ws.ts';
import {
  type Feed,
  follow,
  type Gap,
  isGap,
  type KeyValues,
  type Source,
  type Store,
  typed,
} from '../../packages/client/src/index.ts';
import type { Caller } from './callers.ts';
import { Process, type Simulation } from './core.ts';
import type { Network } from './network.ts';

/** What all apps share. */
export interface AppWorld {
  readonly sim: Simulation;
  readonly network: Network;
  /** An address of the graph for the next connection. */
  url(): string;
  /** How many times as long everybody takes between two things. */
  readonly pace: number;
  /** Likewise between two payments. */
  readonly payingPace: number;
}

/** What is kept by an app's device, in the order of its keeping. */
export type Kept =
  | { readonly id: string; readonly cursor: string }
  | { readonly gap: string; readonly cursor: string }
  /** A place alone: all that is the reader's up to there has been kept before. */
  | { readonly mark: string };

/** In ordinary hours an app asks more rarely whether its gateway is there: what a broken connection does is for dense ones to find. */
const RARE_PINGS = { everyMs: 40_000, withinMs: 5_000 };

/** How long an app that has closed everything may still connect, in milliseconds: it may have been waiting for a token, or for what it gives up then. */
const LEAVING_MS = 20_000;

/** What a feed selects of an event. */
export interface SeenEvent {
  readonly id: string;
  readonly cursor: string;
}

export const EVENTS = typed<{ events: SeenEvent }, { after?: string | null }>(
  'subscription ($after: Cursor) { events(after: $after) { cursor id type receivedAt } }',
);
export const MONEY_IN = typed<{ moneyIn: SeenEvent }, { after?: string | null }>(
  'subscription ($after: Cursor) { moneyIn(after: $after) { cursor id receivedAt } }',
);

/** An app as a process that comes and goes, on a device that stays. */
export abstract class App {
  readonly name: string;
  readonly caller: Caller;
  protected readonly world: AppWorld;
  process: Process | undefined;
  /** The process whose person has signed out. */
  protected left: Process | undefined;
  /** What its process does as the person signs out. */
  protected readonly closings: (() => void)[] = [];
  /** Whether it ends as soon as its device has kept something: before it can do what comes next. */
  endsAsItKeeps = false;

  constructor(world: AppWorld, name: string, caller: Caller) {
    this.world = world;
    this.name = name;
    this.caller = caller;
  }

  start(): void {
    if (this.process?.isAlive === true) return;
    const process = new Process(this.world.sim, this.name, 0, this.device);
    this.process = process;
    this.closings.length = 0;
    process.run(() => this.live(process));
  }

  kill(): void {
    this.spare();
    this.process?.kill();
  }

  /** Its person signs out: it closes what it has begun, and its process goes on. @returns whether it is there */
  signOut(): boolean {
    const { process } = this;
    if (process?.isAlive !== true || this.left === process) return false;
    this.left = process;
    process.run(() => {
      for (const close of this.closings.splice(0)) close();
    });
    this.world.network.mayConnectUntil.set(process, this.world.sim.elapsed + LEAVING_MS);
    return true;
  }

  /** It is to end by no fault any more. */
  spare(): void {
    this.endsAsItKeeps = false;
  }

  /** What it runs on. Tabs of one browser have one device. */
  protected get device(): string {
    return this.name;
  }

  /** A way to the graph, by the real client. */
  protected source(transport: 'socket' | 'fetch'): Source & Partial<Pick<Socket, 'close'>> {
    const { network, pace } = this.world;
    const place = { url: () => `${this.world.url()}/graphql`, token: () => this.caller.token() };
    return transport === 'socket'
      ? createSocket({
          ...place,
          webSocketImpl: network.socketClass(),
          ...(pace > 1 && { heartbeat: RARE_PINGS }),
        })
      : createFetch({ ...place, fetch: network.fetch as typeof fetch });
  }

  /** The time that a device takes to keep something, which it may not outlive. */
  protected disk(work: () => void): Promise<void> {
    const { sim } = this.world;
    return new Promise((resolve) => {
      sim.after(0.2, this.process, () => {
        work();
        if (this.endsAsItKeeps) this.kill();
        resolve();
      });
    });
  }

  /** A storage of the device, as a browser gives it to a page: what it holds is read and written after a while. */
  protected storage(values: Map<string, string>): KeyValues {
    return {
      getItem: async (key) => {
        await this.disk(() => {});
        return values.get(key) ?? null;
      },
      setItem: (key, value) => this.disk(() => void values.set(key, value)),
    };
  }

  protected abstract live(process: Process): void;
}

/** Follows the log by the real client, and keeps what comes. */
export class Reader extends App {
  readonly kept: Kept[] = [];
  readonly kind: 'events' | 'moneyIn';
  readonly #transport: 'socket' | 'fetch';
  /** How long it takes over each event, in milliseconds. */
  slowness = 0;
  #cursor: string | undefined;
  /** As its app shows it. */
  feed: Feed<SeenEvent> | undefined;
  /** Told of each item once it is kept. */
  onKept: (reader: Reader, item: Kept) => void = () => {};

  constructor(
    world: AppWorld,
    name: string,
    caller: Caller,
    { transport, kind }: { readonly transport: 'socket' | 'fetch'; readonly kind: 'events' | 'moneyIn' },
  ) {
    super(world, name, caller);
    this.#transport = transport;
    this.kind = kind;
  }

  protected live(process: Process): void {
    const store: Store<SeenEvent> = {
      load: () => (this.#cursor === undefined ? undefined : { cursor: this.#cursor }),
      save: (item, cursor) => this.disk(() => this.#keep(item, cursor)),
    };
    const options = { store, presence: () => () => {} };
    const source = this.source(this.#transport);
    const feed = this.kind === 'events' ? follow(source, EVENTS, options) : follow(source, MONEY_IN, options);
    this.feed = feed;
    this.closings.push(
      () => feed.close(),
      () => source.close?.(),
    );
    const read = async (): Promise<void> => {
      for await (const _ of feed) {
        if (this.slowness > 0)
          await new Promise<void>((resolve) => this.world.sim.after(this.slowness, process, resolve));
      }
      if (this.left !== process) throw new Error('the feed has ended');
    };
    read().catch((error: unknown) => {
      if (process.isAlive) this.world.sim.fail(new Error(`${this.name}: ${String(error)}`, { cause: error }));
    });
  }

  #keep(item: SeenEvent | Gap<SeenEvent> | undefined, cursor: string): void {
    this.#cursor = cursor;
    if (item === undefined) {
      this.kept.push({ mark: cursor });
      return;
    }
    const kept: Kept = isGap(item) ? { gap: item.reason, cursor } : { id: item.id, cursor };
    this.kept.push(kept);
    this.onKept(this, kept);
  }
}
