import { Pause } from './pause.ts';
import { type KeyValues, slot } from './stores.ts';
import { inTurn } from './turns.ts';

/** One intent to pay, from before it is first sent until the app has shown how it ended. */
export interface Intent {
  readonly idempotencyKey: string;
  /** The mutation's field, such as `createMoneyOut`. */
  readonly mutation: string;
  /** Without the key. */
  readonly input: Readonly<Record<string, unknown>>;
  /** When it was made, as an ISO 8601 text. */
  readonly createdAt: string;
  /** How many calls have been sent that may have moved money: each but those that were answered "this call has moved nothing". */
  readonly unanswered: number;
  /** How it ended: what the mutation answered. */
  readonly result?: unknown;
  /** When the app had shown how it ended. It is kept for a while longer, for a `pay` that is still running. */
  readonly acknowledgedAt?: string;
}

/**
 * Where intents are kept, one store for each signed-in person. Of your own: two functions that read and write the whole list.
 * Where several processes or tabs share it, `save` is a compare-and-set: it writes nothing and returns false where the list is no
 * longer `before`, what `load` gave.
 */
export interface IntentStore {
  load(): readonly Intent[] | Promise<readonly Intent[]>;
  // biome-ignore lint/suspicious/noConfusingVoidType: a store that nobody shares has nothing to say.
  save(intents: readonly Intent[], before: readonly Intent[]): void | boolean | Promise<void | boolean>;
}

export function memoryIntents(): IntentStore {
  let intents: readonly Intent[] = [];
  return {
    load: () => intents,
    save(next) {
      intents = next;
    },
  };
}

/** Until another tab has been told what this one has written, in milliseconds. */
const TOLD_MS = 100;

/**
 * Keeps intents as one value of a storage: `intentStore(localStorage, 'payments')`, or React Native's AsyncStorage. Tabs take turns by
 * Web Locks. Without them (a page over plain http, an old WebView) this reads and writes in one step, and looks a moment later
 * whether what it has written stands: another tab's page may have read before it was told. A browser that takes longer than that
 * moment to tell of it is not noticed.
 */
export function intentStore(storage: KeyValues, key: string): IntentStore {
  const { read, write, alone } = slot<readonly Intent[]>(storage, key);
  return {
    load: async () => (await read()) ?? [],
    async save(intents, before) {
      let isWritten = false;
      await alone(async (isShared) => {
        const told = async () => isShared && new Pause().wait(TOLD_MS);
        await told();
        await write((now = []) => {
          isWritten = JSON.stringify(now) === JSON.stringify(before);
          return isWritten ? intents : undefined;
        });
        await told();
        if (!isShared || !isWritten) return;
        const now = JSON.stringify(await read());
        isWritten = intents.every((one) => before.includes(one) || now.includes(JSON.stringify(one)));
      });
      return isWritten;
    },
  };
}

/** Changes the list of intents; what `change` returns is written before this resolves. It is asked again where another was quicker. */
export const changeIntents = (
  store: IntentStore,
  change: (intents: readonly Intent[]) => readonly Intent[],
): Promise<void> =>
  inTurn(store, 'intents', async () => {
    for (;;) {
      const before = await store.load();
      const after = change(before);
      if (after === before || (await store.save(after, before)) !== false) return;
    }
  });

/** Whether two inputs mean the same payment, in whatever order their fields stand. */
export const isSameInput = (one: unknown, other: unknown): boolean => canonical(one) === canonical(other);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort())
      : part,
  );

/** 128 random bits. */
export function randomKey(): string {
  if (globalThis.crypto?.getRandomValues === undefined) {
    throw new Error('crypto is missing here: pass newKey.');
  }
  return globalThis.crypto.getRandomValues(new Uint32Array(4)).join('-');
}
