import { createHash } from 'node:crypto';
import {
  closeSync,
  fdatasync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { CommandError } from './command.ts';

const sync = promisify(fdatasync);

/** Bytes of a record: a whole number of sectors, and more than the longest cursor needs. */
const RECORD_BYTES = 2_048;
const CHECKSUM_DIGITS = 16;

/**
 * A cursor on disk, written in place. Two records are written in turn, each with a number and a checksum, so that one is
 * intact whatever happens while the other is written. A saved cursor outlives the process at once. It outlives the machine as
 * soon as the disk has it; `save` does not wait for that.
 */
export class CursorFile {
  readonly #path: string;
  #file: number | undefined;
  #number = 0;
  #cursor: string | undefined;
  #syncing: Promise<void> | undefined;
  #isDirty = false;
  #failure: unknown;

  /** @throws CommandError if the file cannot be read, or holds no cursor */
  constructor(path: string) {
    this.#path = path;
    let text: string;
    try {
      text = readFileSync(path, 'latin1');
    } catch (cause) {
      if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return;
      throw new CommandError(`${path} cannot be read: ${String(cause)}`, { cause });
    }
    const records = [text.slice(0, RECORD_BYTES), text.slice(RECORD_BYTES)].flatMap(readRecord);
    const newest = records.toSorted((one, other) => other.number - one.number)[0];
    // A file with a cursor alone, which an operator has written.
    const alone = /^\s*([\w-]+)\s*$/.exec(text)?.[1];
    this.#number = newest?.number ?? 0;
    this.#cursor = newest?.cursor ?? alone;
    // Beginning with events to come would leave out earlier ones without a word.
    if (this.#cursor === undefined) {
      throw new CommandError(`${path} holds no cursor. Delete it, and start again with --from.`);
    }
  }

  /** The cursor that was saved last; undefined if there is no file yet. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /**
   * @throws CommandError if it cannot be written, if an earlier write did not reach the disk, or if another process has
   * replaced the file
   */
  save(cursor: string): void {
    try {
      if (this.#failure !== undefined) throw this.#failure;
      this.#file ??= this.#open(cursor);
      if (fstatSync(this.#file).nlink === 0) {
        throw new Error('another process saves its place there, or the file was deleted');
      }
      this.#number += 1;
      const place = (this.#number % 2) * RECORD_BYTES;
      writeSync(this.#file, record(this.#number, cursor), 0, RECORD_BYTES, place);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new CommandError(`The cursor cannot be saved in ${this.#path}: ${why}`, { cause });
    }
    this.#cursor = cursor;
    this.#isDirty = true;
    this.#syncing ??= this.#sync(this.#file);
  }

  /** Resolves once the disk has the saved cursor. */
  async close(): Promise<void> {
    await this.#syncing;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** Replaces the file by one of whole records. If the process is killed meanwhile, or the machine loses its power, the file before stays. */
  #open(cursor: string): number {
    const next = `${this.#path}.next`;
    const first = record(this.#number, this.#cursor ?? cursor);
    // Some file systems (XFS) would else put the name in its place before the records are on the disk.
    writeFileSync(next, Buffer.concat([first, first]), { mode: 0o600, flush: true });
    const file = openSync(next, 'r+');
    renameSync(next, this.#path);
    return file;
  }

  async #sync(file: number): Promise<void> {
    try {
      while (this.#isDirty) {
        this.#isDirty = false;
        await sync(file);
      }
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#syncing = undefined;
    }
  }
}

const checksum = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, CHECKSUM_DIGITS);

function record(number: number, cursor: string): Buffer {
  const text = `${number} ${cursor}`;
  return Buffer.from(`${`${text} ${checksum(text)}`.padEnd(RECORD_BYTES - 1)}\n`);
}

function readRecord(text: string): { readonly number: number; readonly cursor: string }[] {
  const [, number = '', cursor = '', sum] = /^(\d+) (\S+) ([0-9a-f]+) *\n$/.exec(text) ?? [];
  return sum === checksum(`${number} ${cursor}`) ? [{ number: Number(number), cursor }] : [];
}
