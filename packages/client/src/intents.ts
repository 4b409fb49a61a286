import { type KeyValues, slot } from './stores.ts';

/** One intent to pay, from before it is first sent until the app has shown how it ended. */
export interface Intent {
  readonly idempotencyKey: string;
  /** The mutation's field, such as `createMoneyOut`. */
  readonly mutation: string;
  /** Without the key. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Whether a call has been sent whose answer never came: money may have moved. */
  readonly inDoubt: boolean;
  /** How it ended: what the mutation answered. */
  readonly result?: unknown;
}

/** Where intents are kept. Of your own: any two functions that read and write the whole list. */
export interface IntentStore {
  load(): readonly Intent[] | Promise<readonly Intent[]>;
  save(intents: readonly Intent[]): void | Promise<void>;
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

/** Keeps intents as one value of a storage: `intentStore(localStorage, 'payments')`, or React Native's AsyncStorage. */
export function intentStore(storage: KeyValues, key: string): IntentStore {
  const { read, change } = slot<readonly Intent[]>(storage, key);
  return { load: async () => (await read()) ?? [], save: (intents) => change(() => intents) };
}

/** Changes of one store, one after another. */
const turns = new WeakMap<IntentStore, Promise<unknown>>();

/** Changes the list of intents; what `change` returns is written before this resolves. */
export async function changeIntents(
  store: IntentStore,
  change: (intents: readonly Intent[]) => readonly Intent[],
): Promise<void> {
  const mine = (turns.get(store) ?? Promise.resolve()).then(async () =>
    store.save(change(await store.load())),
  );
  turns.set(
    store,
    mine.catch(() => undefined),
  );
  await mine;
}

/** Whether two inputs mean the same payment, in whatever order their fields stand. */
export const isSameInput = (one: unknown, other: unknown): boolean => canonical(one) === canonical(other);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/** 128 random bits in hexadecimal. */
export function randomKey(): string {
  if (globalThis.crypto?.getRandomValues === undefined) {
    throw new Error('crypto.getRandomValues is missing here: pass newKey.');
  }
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
