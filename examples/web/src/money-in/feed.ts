import type { CombinedError, OperationResult } from 'urql';
import { onEnd, pipe, subscribe } from 'wonka';
import type { MissedCreditsQuery, WatchMoneyInSubscription } from '../gql/graphql.ts';
import { codeOf, type Graph } from '../graph/graph.ts';
import { type Credit, LOG_END, MISSED_CREDITS, RECENT_CREDITS, WATCH_MONEY_IN } from './documents.ts';
import { load, type Saved, save, withCredit } from './saved.ts';

/** How long to wait before a stream that has ended is asked for again, in milliseconds. */
const AGAIN_MS = 1_000;
const HISTORY = 20;

export interface FeedState {
  /** Newest first. */
  readonly credits: readonly Credit[];
  readonly status: 'connecting' | 'catching-up' | 'live' | 'offline';
  /** How many credits are known to be still on their way while catching up. */
  readonly missing: number;
  /** The log no longer held everything since the last visit: the list has started over. */
  readonly startedOver: boolean;
  /** What the gateway refuses, in its own words; it is asked again all the same. */
  readonly problem: string | undefined;
}

/**
 * The credits of one client as they arrive. The list and its place in the log are kept on this device, so that it goes
 * on where it was after a reload, a lost connection or a restart of the gateway, without a gap or a repeat.
 */
export class MoneyInFeed {
  readonly #graph: Graph;
  readonly #clientId: string;
  readonly #listeners = new Set<() => void>();
  #state: FeedState = {
    credits: [],
    status: 'connecting',
    missing: 0,
    startedOver: false,
    problem: undefined,
  };
  #saved: Saved | undefined;
  /** Ids that were missed and have not arrived yet, as far as they are known. */
  readonly #awaited = new Set<string>();
  /** Ids that have arrived while the missed ones are being asked for. */
  #arrived: Set<string> | undefined;
  /** Whether the socket is open: it may have been before this stream began. */
  #connected = false;

  constructor(graph: Graph, clientId: string) {
    this.#graph = graph;
    this.#clientId = clientId;
  }

  readonly state = (): FeedState => this.#state;

  /** Tells of every change. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Runs until the function that it returns is called. */
  start(): () => void {
    const stopped = new AbortController();
    const { sockets } = this.#graph;
    const unlisten = [
      sockets.on('connected', () => {
        this.#connected = true;
        void this.#measure(stopped.signal);
      }),
      sockets.on('closed', () => {
        this.#connected = false;
        this.#change({ status: 'offline' });
      }),
    ];
    void this.#run(stopped.signal);
    return () => {
      stopped.abort();
      for (const off of unlisten) off();
    };
  }

  #change(change: Partial<FeedState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }

  /** Streams until stopped. A stream that ends is asked for again from where it stood. */
  async #run(stopped: AbortSignal): Promise<void> {
    this.#saved ??= load(this.#clientId);
    if (this.#saved !== undefined) this.#change({ credits: this.#saved.credits });
    while (!stopped.aborted) {
      const error = (await this.#begin()) ?? (await this.#stream(stopped));
      if (stopped.aborted) return;
      const code = codeOf(error);
      if (code === 'EVENTS_GAP' || code === 'CURSOR_INVALID') {
        // What is on the screen may lack something, so it is not built upon: the log's own end is read afresh.
        this.#saved = undefined;
        this.#change({ startedOver: true });
        continue;
      }
      this.#change({ status: 'offline', problem: error?.graphQLErrors[0]?.message });
      await pause(AGAIN_MS, stopped);
    }
  }

  /** Gives the list its first place in the log, where it has none: behind the newest credits that the log holds. */
  async #begin(): Promise<CombinedError | undefined> {
    if (this.#saved !== undefined) return undefined;
    const fresh = { requestPolicy: 'network-only' } as const;
    const end = await this.#graph.client.query(LOG_END, {}, fresh);
    if (end.data === undefined) return end.error;
    const recent = await this.#graph.client.query(RECENT_CREDITS, { last: HISTORY }, fresh);
    const nodes = recent.data?.events?.nodes;
    if (nodes === undefined) return recent.error;
    const credits = nodes.filter((node): node is Credit => 'amount' in node).reverse();
    this.#keep({ credits, cursor: credits[0]?.cursor ?? end.data.eventCursor });
    return undefined;
  }

  #keep(saved: Saved): void {
    this.#saved = saved;
    save(this.#clientId, saved);
    this.#change({ credits: saved.credits });
  }

  /** Resolves when the stream has ended, with the error that ended it. */
  #stream(stopped: AbortSignal): Promise<CombinedError | undefined> {
    const { promise, resolve } = Promise.withResolvers<CombinedError | undefined>();
    const take = ({ data, error }: OperationResult<WatchMoneyInSubscription>): void => {
      const credit = data?.moneyIn;
      // At the end urql repeats the last result, and beside an error the data of the one before.
      if (credit !== undefined && this.#saved !== undefined && credit.cursor !== this.#saved.cursor) {
        this.#keep(withCredit(this.#saved, credit));
        this.#settle(credit.id, stopped);
      } else if (error !== undefined) {
        resolve(error);
      }
    };
    const { unsubscribe } = pipe(
      this.#graph.client.subscription(WATCH_MONEY_IN, { after: this.#saved?.cursor ?? null }),
      onEnd(() => resolve(undefined)),
      subscribe(take),
    );
    stopped.addEventListener('abort', () => resolve(undefined), { once: true });
    if (this.#connected) void this.#measure(stopped);
    return promise.finally(unsubscribe);
  }

  /** Asks how far behind the list is, to say so until it has caught up. */
  async #measure(stopped: AbortSignal): Promise<void> {
    if (stopped.aborted || this.#saved === undefined) return;
    const arrived = new Set<string>();
    this.#arrived = arrived;
    this.#awaited.clear();
    this.#change({ status: 'catching-up', missing: 0, problem: undefined });
    for (let after: string | null = this.#saved.cursor; after !== null; ) {
      const page: MissedCreditsQuery['events'] | undefined = await this.#missedAfter(after);
      // A later connection measures for itself.
      if (stopped.aborted || this.#arrived !== arrived) return;
      if (!page) {
        await pause(AGAIN_MS, stopped);
        continue;
      }
      for (const { id } of page.nodes) if (!arrived.has(id)) this.#awaited.add(id);
      after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
    }
    this.#arrived = undefined;
    this.#caughtUp();
  }

  async #missedAfter(after: string): Promise<MissedCreditsQuery['events'] | undefined> {
    const { data } = await this.#graph.client.query(
      MISSED_CREDITS,
      { after },
      { requestPolicy: 'network-only' },
    );
    return data?.events;
  }

  #settle(id: string, stopped: AbortSignal): void {
    if (stopped.aborted) return;
    this.#arrived?.add(id);
    if (this.#awaited.delete(id)) this.#caughtUp();
  }

  #caughtUp(): void {
    if (this.#state.status !== 'catching-up') return;
    const missing = this.#awaited.size;
    this.#change({ missing, status: missing === 0 && this.#arrived === undefined ? 'live' : 'catching-up' });
  }
}

function pause(milliseconds: number, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  stopped.addEventListener('abort', () => resolve(), { once: true });
  return promise.finally(() => clearTimeout(timer));
}
