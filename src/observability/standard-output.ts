import { writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

const STANDARD_OUTPUT = 1;
/** How long a full pipe is given before the next try, in milliseconds. */
const PAUSE_MS = 50;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Standard output as the log's destination. A line that cannot be written, as to a file on a full disk or to a reader that has gone, is
 * dropped. (pino's own destination ends the process then, or keeps all further lines in memory and hangs at the end.) A reader that is there
 * and reads no more holds up all that the process does, once the pipe is full.
 *
 * @param write as Node's `writeSync`
 */
export function standardOutput(write: (fd: number, bytes: Buffer) => number = writeSync): DestinationStream {
  let isCut = false;
  return {
    write(line) {
      let rest: Buffer = Buffer.from(isCut ? `\n${line}` : line);
      const { length } = rest;
      while (rest.length > 0) {
        try {
          rest = rest.subarray(write(STANDARD_OUTPUT, rest));
        } catch (error) {
          if (!isBusy(error)) break;
          Atomics.wait(sleeper, 0, 0, PAUSE_MS);
        }
      }
      // Where some of the line was written, the next one begins after a line break.
      isCut = rest.length > 0 && (isCut || rest.length < length);
    },
  };
}

/** Whether a pipe is full: its reader has not come to it yet. */
const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || error.code === 'EBUSY');
