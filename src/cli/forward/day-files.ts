import { mkdirSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { ForwardedEvent, Receiver } from './receiver.ts';

const LINE_FEED = 0x0a;
/** Longer than the longest event: a webhook has 64 KiB at most, and is escaped once. */
const TAIL_BYTES = 1_048_576;

/**
 * A receiver that is a folder with a file for each day on which events arrived, by UTC: `events-2026-11-22.jsonl`, an event
 * on each line, in the order of the log. An event counts as taken once the disk has it. A line that a crash has cut short is
 * removed, and the last event is not written again. Another one may have its id, and has another cursor.
 */
export function createDayFiles(folder: string): Pick<Receiver, 'take' | 'close'> {
  let current: { readonly name: string; readonly file: FileHandle; last: string | undefined } | undefined;

  async function of(name: string) {
    if (current?.name === name) return current;
    await current?.file.close();
    current = undefined;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, name);
    // Noted before it is read: Node ends a process that lets go of an open file.
    current = { name, file: await open(path, 'a+', 0o600), last: undefined };
    current.last = await lastCursorIn(current.file, path);
    return current;
  }

  return {
    async take(event: ForwardedEvent) {
      try {
        const day = await of(`events-${event.receivedAt.slice(0, 10)}.jsonl`);
        if (day.last === event.cursor) return undefined;
        await append(day.file, `${JSON.stringify(event)}\n`);
        day.last = event.cursor;
        return undefined;
      } catch (error) {
        // The file is opened again, by which a line that was written in part is removed.
        await current?.file.close().catch(() => undefined);
        current = undefined;
        return { text: error instanceof Error ? error.message : String(error), isAway: true };
      }
    },
    async close() {
      await current?.file.close();
      current = undefined;
    },
  };
}

/** Adds a line, and resolves once the disk has it. Where that fails, the file has nothing of it, as far as the disk lets it be cut off. */
async function append(file: FileHandle, line: string): Promise<void> {
  const { size } = await file.stat();
  try {
    await file.appendFile(line);
    await file.datasync();
  } catch (error) {
    // After a failed sync Linux takes the line for written, and another sync would succeed without it.
    await file.truncate(size).catch(() => undefined);
    throw error;
  }
}

/**
 * Returns the cursor of the last whole line, once the disk has that line, and cuts off what follows it.
 *
 * @throws {Error} where that line is no event
 */
async function lastCursorIn(file: FileHandle, path: string): Promise<string | undefined> {
  const { size } = await file.stat();
  const start = Math.max(0, size - TAIL_BYTES);
  const tail = Buffer.alloc(size - start);
  await file.read(tail, 0, tail.length, start);
  const end = tail.lastIndexOf(LINE_FEED);
  if (end + 1 < tail.length) await file.truncate(start + end + 1);
  if (end < 0) return undefined;
  // A command that was killed between the writing and the sync may have left it.
  await file.datasync();
  const line = tail.toString('utf8', end === 0 ? 0 : tail.lastIndexOf(LINE_FEED, end - 1) + 1, end);
  try {
    const { cursor }: { cursor?: unknown } = JSON.parse(line);
    return typeof cursor === 'string' ? cursor : undefined;
  } catch (cause) {
    throw new Error(`the last line of ${path} is no event: take it out, or move the file away`, { cause });
  }
}
