import { open, readFile } from 'node:fs/promises';
import type { Line } from './app.ts';

/** What a program has kept, compared with what was delivered. */
export interface Verdict {
  readonly lost: number;
  readonly repeated: number;
  readonly gaps: number;
  readonly complete: boolean;
}

/** The number of the last event in a file, from its last lines. */
export async function lastIdOf(path: string): Promise<number> {
  await using file = await open(path);
  const { size } = await file.stat();
  const tail = new Uint8Array(Math.min(size, 4_096));
  await file.read(tail, 0, tail.length, size - tail.length);
  const ids = [...new TextDecoder().decode(tail).matchAll(/"id":"(\d+)"/g)];
  return Number(ids.at(-1)?.[1] ?? 0);
}

/** The lines of a file that are whole. */
export async function linesOf(file: string): Promise<readonly Line[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** Compares what was kept with the numbers that were delivered: each once, in order, or a gap where some are missing. */
export function judge(lines: readonly Line[], delivered: number): Verdict {
  let last = 0;
  let lost = 0;
  let repeated = 0;
  let gaps = 0;
  let mayJump = false;
  for (const { id, gap, isFresh } of lines) {
    if (gap !== undefined) gaps += 1;
    mayJump ||= gap !== undefined || isFresh === true;
    if (id === undefined) continue;
    const number = Number(id);
    if (number <= last) repeated += 1;
    else if (!mayJump) lost += number - last - 1;
    last = Math.max(last, number);
    mayJump = false;
  }
  return { lost, repeated, gaps, complete: last === delivered };
}
