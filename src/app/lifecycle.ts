import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { ConfigError } from './config.ts';

/** Something that is open and must be closed when the process ends. */
type Closer = () => Promise<unknown>;

/** How long a close may take before it is told what it waits for, in milliseconds. */
const PATIENCE_MS = 300;

interface Opened {
  readonly close: Closer;
  /** What closing it waits for, for people. */
  readonly waitsFor: string | undefined;
}

/** What a program that starts hands over. */
export interface Program {
  /** Something is open: how it is closed, and what closing it waits for where that may take long. */
  opened(close: Closer, waitsFor?: string): void;
  /** From now on what is said while it ends are lines of this log, unless a person sits at a terminal. */
  logsTo(logger: Logger): void;
}

/**
 * Runs a program until a signal: what it opens is closed last opened first, at SIGINT and SIGTERM as well as when its
 * start fails. A second signal ends the process at once. A failed start is explained in one message, with exit code 1.
 *
 * @param start opens things, and hands each one's closer over.
 */
export async function runProgram(start: (program: Program) => Promise<void>): Promise<void> {
  const everything: Opened[] = [];
  let log: Logger | undefined;
  const say = (text: string): void => {
    if (log === undefined || process.stderr.isTTY) {
      process.stderr.write(`\n${text} Ctrl-C again ends it at once.\n`);
    } else log.info({}, text);
  };
  const close = async (): Promise<void> => {
    for (const { close, waitsFor } of everything.splice(0).reverse()) {
      const tell = clock.setTimeout(() => {
        if (waitsFor === undefined) return;
        say(`Ending. Waiting for ${waitsFor}.`);
      }, PATIENCE_MS);
      await close();
      clock.clearTimeout(tell);
    }
  };
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130);
      stopping = true;
      void close().then(() => process.exit());
    });
  }
  try {
    await start({
      opened: (close, waitsFor) => everything.push({ close, waitsFor }),
      logsTo(logger) {
        log = logger;
      },
    });
  } catch (error) {
    process.exitCode = 1;
    process.stderr.write(`${explain(error)}\n`);
    await close();
    process.exit();
  }
}

/** Says what a person can do about an error of the start. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof Error && 'syscall' in error && 'code' in error) {
    const host = 'hostname' in error ? error.hostname : 'address' in error ? error.address : undefined;
    const port = 'port' in error ? String(error.port) : '';
    if (error.code === 'EADDRINUSE') {
      return `${String(host)}:${port} is in use by another process. Choose other ports with PORT and SANDBOX_PORT.`;
    }
    if (error.syscall === 'listen' && error.code === 'EACCES') {
      return `PORT: got ${port}, which needs rights that this process lacks. Choose a port over 1023.`;
    }
    if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') {
      return `HOST: got "${String(host)}", which is no address of this machine. Choose another, such as 127.0.0.1 or 0.0.0.0.`;
    }
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
