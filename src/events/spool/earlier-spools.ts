import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { clock } from '../../common/clock.ts';
import { entropy } from '../../common/entropy.ts';

/**
 * An earlier version looks into every one of these files each 10 s. After this time without a sign, in milliseconds, it has
 * missed three looks.
 */
const SILENT_FOR_MS = 30_000;
/** A file with this number or a higher one is a bait: no version has so many spools. */
const FIRST_BAIT = 900_000_000;
const BAITS = 99_999_999;
const SUFFIXES = ['', '-wal', '-shm', '-journal'];

/**
 * The spools of earlier versions, `spool-0.sqlite` and so on. The lock on such a file says nothing: the version before 0.1.0
 * gives it up while it goes on writing to the file. A file that two processes write is destroyed.
 *
 * So this version has names of its own, and takes over these files only when no process of an earlier version is there any more.
 * Earlier versions open every file of such a name that they find, and write their tables into an empty one. An empty file is
 * laid out for them as a bait: where it stays empty for long, none of them runs on this folder, in whichever container. One that
 * stands still is found by what it has open, where the operating system tells that.
 */
export class EarlierSpools {
  readonly #dataDir: string;
  readonly #now: () => number;
  readonly #onBusy: () => void;
  readonly #bait: string;
  #laidAt: number | undefined;

  /**
   * @param onBusy is called whenever a process of an earlier version has been noticed
   * @param now in milliseconds, by a clock that only goes forward
   */
  constructor(dataDir: string, onBusy: () => void, now: () => number = () => clock.monotonic()) {
    this.#dataDir = dataDir;
    this.#now = now;
    this.#onBusy = onBusy;
    const number = FIRST_BAIT + Math.floor(entropy.random() * BAITS);
    this.#bait = join(dataDir, `spool-${number}.sqlite`);
  }

  /**
   * Returns the names of the files that may be taken over now. The caller asks again and again, because it takes half a
   * minute to be sure.
   *
   * @throws when the folder cannot be read or written
   */
  free(): readonly string[] {
    const names = readdirSync(this.#dataDir).filter(isEarlierSpoolName);
    if (names.length === 0) {
      this.stop();
      return [];
    }
    if (this.#laidAt === undefined) {
      this.#lay();
      return [];
    }
    if (isTaken(this.#bait)) {
      this.#onBusy();
      this.#lay();
      return [];
    }
    if (this.#now() - this.#laidAt < SILENT_FOR_MS) return [];
    if (names.some((name) => isOpenElsewhere(join(this.#dataDir, name)))) {
      this.#onBusy();
      return [];
    }
    return names;
  }

  /** Removes the bait. */
  stop(): void {
    if (this.#laidAt === undefined) return;
    this.#laidAt = undefined;
    removeDatabase(this.#bait);
  }

  #lay(): void {
    this.stop();
    closeSync(openSync(this.#bait, 'w', 0o600));
    this.#laidAt = this.#now();
  }
}

/** Whether a file of `DATA_DIR` is, or should be, a spool of an earlier version. */
export function isEarlierSpoolName(name: string): boolean {
  const [, number] = /^spool-(\d+)\.sqlite$/.exec(name) ?? [];
  return number !== undefined && Number(number) < FIRST_BAIT;
}

/** Removes a database that nobody has open, with what SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of SUFFIXES) rmSync(path + suffix, { force: true });
}

function isTaken(bait: string): boolean {
  return statSync(bait, { throwIfNoEntry: false })?.size !== 0 || existsSync(`${bait}-wal`);
}

/** True if another process has a file open, as far as this one can see. Only Linux tells; elsewhere the result is false. */
function isOpenElsewhere(path: string): boolean {
  if (!existsSync('/proc/self/fd')) return false;
  const file = realpathSync(path);
  return readdirSync('/proc')
    .filter((id) => /^\d+$/.test(id) && Number(id) !== process.pid)
    .some((id) => opened(id).includes(file));
}

/**
 * Returns the files that a process has open. Empty for a process that has just ended, or that is another user's and cannot
 * open these files.
 */
function opened(id: string): readonly string[] {
  try {
    return readdirSync(`/proc/${id}/fd`).map((descriptor) => {
      try {
        return readlinkSync(`/proc/${id}/fd/${descriptor}`);
      } catch {
        return '';
      }
    });
  } catch {
    return [];
  }
}
