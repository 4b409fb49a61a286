import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 5_000;

/** Unit of the operating system's CPU times, in milliseconds. */
const TICK_MS = 1_000 / Number(execFileSync('getconf', ['CLK_TCK']));

/** A server in a process of its own. */
export interface RunningServer extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  /** CPU time of all its threads so far, user and system, in milliseconds. */
  cpuMs(): number;
  /** Resident memory, in bytes. */
  rssBytes(): number;
  stop(): Promise<void>;
}

export interface ServerProgram {
  readonly name: string;
  /** Arguments of `node`: options of its own first, then the file and what the file reads. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** A run that is cut short leaves no process behind. */
export function endWithThisProcess(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

/** Starts a program with Node, and waits until it has said where it listens. */
export async function startServer(program: ServerProgram): Promise<RunningServer> {
  const child = spawn(process.execPath, program.args, {
    env: { NODE_ENV: 'production', ...program.env },
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
  });
  endWithThisProcess(child);
  const ended = once(child, 'exit');

  const url = await new Promise<string>((resolve, reject) => {
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`${program.name} ${why}`));
    };
    const timer = setTimeout(fail, START_TIMEOUT_MS, `did not start within ${START_TIMEOUT_MS} ms`);
    child.once('error', (error) => fail(`could not be started: ${error.message}`));
    child.once('exit', (code) => fail(`ended with ${code} before it listened`));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const announced = urlIn(line);
      if (announced === undefined) return;
      clearTimeout(timer);
      resolve(announced);
    });
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program.name} has no process`);

  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
  };
  return {
    name: program.name,
    url,
    pid,
    cpuMs: () => cpuMsOf(pid),
    rssBytes: () => rssBytesOf(pid),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function urlIn(line: string): string | undefined {
  if (!line.startsWith('{')) return undefined;
  const { url } = JSON.parse(line);
  return typeof url === 'string' ? url : undefined;
}

/** `utime` and `stime` of `/proc/<pid>/stat`, which count every thread of the process (proc(5)). */
export function cpuMsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field is the program's name in parentheses, and may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Resident memory, in bytes. */
export function rssBytesOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1]) * 1_024;
}
