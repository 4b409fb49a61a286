import { follow, isGap, keyValueStore, type Saved } from '../../packages/client/src/index.ts';
import { App, type AppWorld, EVENTS, type Kept, MONEY_IN, type SeenEvent } from './apps.ts';
import type { Caller } from './callers.ts';
import type { Process } from './core.ts';

/** Under which the tabs of a browser keep their one list. */
const KEY = 'feed';

/** How many events the stores of the client keep. */
const KEPT = 200;

/** A browser, whose tabs share what they store. */
export class Browser {
  readonly name: string;
  readonly caller: Caller;
  readonly kind: 'events' | 'moneyIn';
  readonly values = new Map<string, string>();

  constructor(name: string, caller: Caller) {
    this.name = name;
    this.caller = caller;
    this.kind = caller.customerId === undefined ? 'events' : 'moneyIn';
  }

  /**
   * Whether the list gives up its oldest items. Behind a gap events come again: one that still stands before it is not stored again, and may be given up
   * before one that is older.
   */
  get isFull(): boolean {
    return this.kept.length > KEPT;
  }

  /** The list as it is stored, and then the place up to which it reaches. */
  get kept(): readonly Kept[] {
    const saved = JSON.parse(this.values.get(KEY) ?? 'null') as Saved<SeenEvent> | null;
    if (saved === null) return [];
    const items = (saved.events ?? []).map((item) =>
      isGap(item) ? { gap: item.reason, cursor: item.cursor } : { id: item.id, cursor: item.cursor },
    );
    return [...items, { mark: saved.cursor }];
  }
}

/** A tab that follows the log by the real client, with the list of its browser. */
export class Tab extends App {
  /** What it has handed out, in the order of its handing out. A tab that begins anew does so where its browser's list ends. */
  readonly kept: Kept[] = [];
  readonly kind: 'events' | 'moneyIn';
  readonly #browser: Browser;
  readonly #transport: 'socket' | 'fetch';

  constructor(world: AppWorld, name: string, browser: Browser, transport: 'socket' | 'fetch') {
    super(world, name, browser.caller);
    this.kind = browser.kind;
    this.#browser = browser;
    this.#transport = transport;
  }

  protected override get device(): string {
    return this.#browser.name;
  }

  protected live(process: Process): void {
    const store = keyValueStore<SeenEvent>(this.storage(this.#browser.values), KEY);
    const options = {
      store: {
        ...store,
        load: async () => {
          const saved = await store.load();
          // The feed loads the list as it begins, and after a gap: of that it hands out what is new to it.
          if (this.#isNew) this.#begin(saved?.cursor);
          return saved;
        },
      },
      presence: () => () => {},
    };
    this.#isNew = true;
    const feed =
      this.kind === 'events'
        ? follow(this.source(this.#transport), EVENTS, options)
        : follow(this.source(this.#transport), MONEY_IN, options);
    const read = async (): Promise<void> => {
      for await (const item of feed)
        this.kept.push(
          isGap(item) ? { gap: item.reason, cursor: item.cursor } : { id: item.id, cursor: item.cursor },
        );
      throw new Error('the feed has ended');
    };
    read().catch((error: unknown) => {
      if (process.isAlive) this.world.sim.fail(new Error(`${this.name}: ${String(error)}`, { cause: error }));
    });
  }

  /** Whether its feed has loaded nothing yet. */
  #isNew = false;

  #begin(cursor: string | undefined): void {
    this.#isNew = false;
    this.kept.push({ gap: 'begun', cursor: '' });
    if (cursor !== undefined) this.kept.push({ mark: cursor });
  }
}
