import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Queue } from './queue.ts';

/** How long a program may live, in milliseconds. */
const LIFETIME_MS = 300_000;

/** What stands behind a program's last line. */
export const ENDED = 'the end';

/** A client's program that runs. */
export interface Program extends AsyncDisposable {
  /** What it writes, and {@link ENDED}. */
  readonly lines: Queue<unknown>;
  /** Resolves once it has ended. */
  readonly ended: Promise<void>;
  /** What it has written to its standard error, on a line of its own. */
  complaint(): string;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const program of running) kill(program);
});

/** Starts the client's program, gives it its command as a line, and reads what it writes. */
export function startProgram([name = '', ...words]: readonly string[], command: object): Program {
  const lines = new Queue<unknown>();
  // In a process group of its own, so that what it has started ends with it.
  const program = spawn(name, words, { stdio: 'pipe', detached: true });
  running.add(program);
  const late = setTimeout(() => kill(program), LIFETIME_MS);
  const ended = Promise.withResolvers<void>();
  let complaint = '';
  const complain = (said: unknown) => {
    complaint += String(said);
  };
  const end = () => {
    clearTimeout(late);
    running.delete(program);
    ended.resolve();
  };
  program.stderr.on('data', complain);
  program.on('error', (cause) => {
    complain(cause);
    end();
  });
  // A program that has ended takes no command.
  program.stdin.on('error', complain);
  program.stdin.end(`${JSON.stringify(command)}\n`);
  createInterface(program.stdout).on('line', (line) => lines.push(parsed(line)));
  program.on('close', () => {
    lines.push(ENDED);
    end();
  });
  return {
    lines,
    ended: ended.promise,
    complaint: () => (complaint === '' ? '' : `\n${complaint}`),
    async [Symbol.asyncDispose]() {
      kill(program);
      await ended.promise;
    },
  };
}

/** Ends a program with all that it has started: `go run` starts the program that is meant. */
function kill(program: ChildProcess): void {
  if (program.pid === undefined || !running.has(program)) return;
  try {
    process.kill(-program.pid, 'SIGKILL');
  } catch {
    // The platform has no process groups.
    program.kill('SIGKILL');
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}
