import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ROOT } from './pages.ts';

/** Where time and chance come from, by the folder that takes them from there. */
const ROOMS = [
  { folder: 'src', rooms: ['common/clock.ts', 'common/entropy.ts'], time: 'clock', chance: 'entropy' },
  { folder: 'packages/client/src', rooms: ['ambient.ts'], time: 'ambient', chance: 'ambient' },
  { folder: 'packages/sandbox/src', rooms: ['ambient.ts'], time: 'ambient', chance: 'ambient' },
] as const;

/** What nobody else calls, and the function of the room that stands for it. */
const RAW: readonly (readonly [RegExp, 'time' | 'chance', string])[] = [
  [/\bDate\.now\b/, 'time', 'now()'],
  [/\bnew Date\(\)/, 'time', 'now(): new Date(….now())'],
  [/\bperformance\.now\b|\bhrtime\b/, 'time', 'monotonic()'],
  [
    /(?<![.\w#])(?:globalThis\.)?set(?:Timeout|Interval|Immediate)\(/,
    'time',
    'setTimeout, setInterval, setImmediate',
  ],
  [/'(?:node:)?timers(?:\/promises)?'/, 'time', 'sleep, immediate'],
  [/\bAbortSignal\.timeout\b/, 'time', 'timeoutSignal(ms)'],
  [/\bMath\.random\b/, 'chance', 'random()'],
  [/\brandomUUID\b/, 'chance', 'uuid()'],
  [/\brandomBytes\b|\brandomInt\b/, 'chance', 'bytes(count)'],
];

const isComment = (line: string): boolean => /^\s*(?:\*|\/\*|\/\/)/.test(line);

it('nobody reads a clock, sets a timer or asks chance but the rooms for it, which the simulator replaces', async () => {
  const found: string[] = [];
  for (const { folder, rooms, ...names } of ROOMS) {
    const path = fileURLToPath(new URL(folder, ROOT));
    for (const file of await readdir(path, { recursive: true })) {
      if (!file.endsWith('.ts') || rooms.some((room) => room === file)) continue;
      const lines = (await readFile(join(path, file), 'utf8')).split('\n');
      for (const [index, line] of lines.entries()) {
        const raw = isComment(line) ? undefined : RAW.find(([pattern]) => pattern.test(line));
        if (raw === undefined) continue;
        const [, kind, instead] = raw;
        found.push(
          `${folder}/${file}:${index + 1} ${line.trim()} — take ${names[kind]}.${instead} from ${folder}/${rooms.at(kind === 'time' ? 0 : -1)}`,
        );
      }
    }
  }
  expect(found).toEqual([]);
});
