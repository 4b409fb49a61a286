import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { clock, type Timer } from '../../common/clock.ts';
import { disk } from '../../common/disk.ts';
import { Lru } from '../../common/lru.ts';
import { isBehind, type Mark } from '../mark.ts';

/** The file in the data folder that keeps them. */
export const MARKS = 'payments.marks.json';
/** How many clients' marks are kept. */
const MOST_CLIENTS = 1_000;
/** After so many milliseconds marks that could not be written are tried again. */
const RETRY_MS = 10_000;
/** After so many milliseconds no process is still at a file that it has begun. */
const LEFT_AFTER_MS = 60_000;
const NOTHING: RedisMark = { epoch: 0, sent: 0, at: 0 };

/** A mark, with when its last payment was counted, in ms since the epoch by the clock of Redis; 0 if a version before noted it. */
interface RedisMark extends Mark {
  readonly at: number;
}

/**
 * The highest count of each client's ledger in Redis that this process has seen, or an earlier process with the same folder.
 * A Redis that shows less was put back to an earlier state. Only counts that every replica has may be noted: then a failover
 * that loses nothing never shows less than a mark.
 */
export class RedisMarks {
  readonly #path: string;
  readonly #marks = new Lru<RedisMark>(MOST_CLIENTS);
  #writing: Promise<void> | undefined;
  #isStale = false;
  #retry: Timer | undefined;

  /** @param path of the file that keeps them. While it cannot be written, they last as long as the process. */
  constructor(path: string) {
    this.#path = path;
    removeLeftovers(path);
    for (const [client, mark] of Object.entries(readMarks(path))) this.#marks.set(client, mark);
  }

  /** The clients that have marks. */
  get clients(): readonly string[] {
    return [...this.#marks.keys()];
  }

  of(clientId: string): RedisMark {
    return this.#marks.get(clientId) ?? NOTHING;
  }

  note(clientId: string, mark: RedisMark): void {
    if (!isBehind(this.of(clientId), mark)) return;
    this.#marks.set(clientId, mark);
    this.#isStale = true;
    this.#begin();
  }

  /** Resolves once the marks are on the disk, if they can be written. */
  async stop(): Promise<void> {
    await this.#writing;
    if (this.#isStale) await this.#begin();
    clock.clearTimeout(this.#retry);
  }

  #begin(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      // Another process of this folder may know more, of these clients and of others.
      const merged = new Map(Object.entries(readMarks(this.#path)));
      for (const [client, mark] of this.#marks.entries())
        if (isBehind(merged.get(client) ?? NOTHING, mark)) merged.set(client, mark);
      try {
        await disk.replace(this.#path, JSON.stringify(Object.fromEntries(merged)));
      } catch {
        // `doctor` and the spool tell of a folder that cannot be written.
        this.#isStale = true;
        clock.clearTimeout(this.#retry);
        this.#retry = clock.setTimeout(() => void this.#begin(), RETRY_MS);
        this.#retry.unref();
        return;
      }
    }
  }
}

/** A process that is killed as it replaces the file leaves the new one beside it, under a name that no other takes. */
function removeLeftovers(path: string): void {
  try {
    for (const name of readdirSync(dirname(path))) {
      const file = join(dirname(path), name);
      // Another ending is an operator's copy.
      const isOwn = name.startsWith(`${basename(path)}.`) && /\.[\da-f-]{36}$/.test(name);
      if (isOwn && clock.now() - statSync(file).mtimeMs > LEFT_AFTER_MS) rmSync(file);
    }
  } catch {
    // There is no such folder yet, another process was first, or the folder cannot be written, of which others tell.
  }
}

function readMarks(path: string): Readonly<Record<string, RedisMark>> {
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof read !== 'object' || read === null) return {};
    return Object.fromEntries(
      Object.entries(read).flatMap(([client, mark]) => {
        const { epoch, sent, at = 0 } = Object(mark);
        return [epoch, sent, at].every(Number.isInteger) ? [[client, { epoch, sent, at }]] : [];
      }),
    );
  } catch {
    return {};
  }
}
