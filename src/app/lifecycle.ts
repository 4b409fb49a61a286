import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { ConfigError } from './config.ts';

/** Closes something that must be closed when the process ends. */
type Closer = () => Promise<unknown>;

/** For how long another signal is the first one again, in milliseconds. */
const SAME_SIGNAL_MS = 1_000;

/** How long a close may take before the process says what it waits for, and that a signal ends it at once, in milliseconds. */
const PATIENCE_MS = SAME_SIGNAL_MS;

interface Opened {
  readonly close: Closer;
  /** What the closing waits for, in words for people. */
  readonly waitsFor: string | undefined;
}

/** The calls by which a starting program registers what it opens. */
export interface Program {
  /** Registers how something that is open is closed, and what that waits for if it may take long. */
  opened(close: Closer, waitsFor?: string): void;
  /** Writes messages about the end into this log from now on, unless a person sits at a terminal. */
  logsTo(logger: Logger): void;
}

/**
 * Calls back at the first SIGINT, SIGTERM or SIGHUP, which a terminal sends as it is closed. Another one within a second is taken
 * for the same: systemd signals each process of a service and a terminal each of its group, and npm, which is one of them, passes
 * on what it gets. A later one ends the process at once, with exit code 130. (Under nohup Node would end at SIGHUP too.)
 */
export function onToldToEnd(end: () => void): void {
  let toldAt: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const now = clock.monotonic();
      if (toldAt === undefined) {
        toldAt = now;
        end();
      } else if (now - toldAt >= SAME_SIGNAL_MS) process.exit(130);
    });
  }
}

/**
 * Runs a program until a signal. At SIGINT, SIGTERM and SIGHUP, and when the start fails, it closes what the program has opened,
 * the last first. A second signal ends the process at once ({@link onToldToEnd}). A failed start is explained in one message, with
 * exit code 1.
 *
 * @param start opens things, and registers how each is closed.
 */
export async function runProgram(start: (program: Program) => Promise<void>): Promise<void> {
  // A terminal that has gone, or a pipe that nobody reads, must not cut off the end.
  process.stderr.on('error', () => undefined);
  const everything: Opened[] = [];
  let log: Logger | undefined;
  const say = (text: string): void => {
    if (log === undefined || process.stderr.isTTY) {
      process.stderr.write(`\n${text} Ctrl-C again ends it at once.\n`);
    } else log.info({}, text);
  };
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= closeAll();
    return closing;
  };
  const closeAll = async (): Promise<void> => {
    for (const { close, waitsFor } of everything.splice(0).reverse()) {
      const tell = clock.setTimeout(() => {
        if (waitsFor === undefined) return;
        say(`Ending. Waiting for ${waitsFor}.`);
      }, PATIENCE_MS);
      await close().catch((error: unknown) => {
        process.exitCode = 1;
        process.stderr.write(`${explain(error)}\n`);
      });
      clock.clearTimeout(tell);
    }
  };
  onToldToEnd(() => void close().then(() => process.exit()));
  try {
    await start({
      opened: (close, waitsFor) => everything.push({ close, waitsFor }),
      logsTo(logger) {
        log = logger;
      },
    });
  } catch (error) {
    // A start that is told to end may fail for want of what is closed by then.
    if (closing === undefined) {
      process.exitCode = 1;
      process.stderr.write(`${explain(error)}\n`);
    }
    await close();
    process.exit();
  }
}

/** Rethrows an error of listening, and says with which variable its port is chosen. */
export const listeningBy =
  (variable: string) =>
  (error: unknown): never => {
    throw error instanceof Error ? Object.assign(error, { variable }) : error;
  };

/** Returns what a person can do about an error of the start. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof Error && 'syscall' in error && 'code' in error) {
    const host = 'hostname' in error ? error.hostname : 'address' in error ? error.address : undefined;
    const port = 'port' in error ? String(error.port) : '';
    const variable = 'variable' in error ? String(error.variable) : 'PORT';
    if (error.code === 'EADDRINUSE') {
      return `${String(host)}:${port} is in use by another process. Choose another port with ${variable}.`;
    }
    if (error.syscall === 'mkdtemp' && 'path' in error) {
      return `${String(error.path)}: no folder can be made there (${String(error.code)}). Name one with DATA_DIR, or another place with TMPDIR.`;
    }
    if (error.syscall === 'listen' && error.code === 'EACCES') {
      return `${variable}: got ${port}, which needs rights that this process lacks. Choose a port over 1023.`;
    }
    if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EAI_AGAIN') {
      return `HOST: got "${String(host)}", which is no address of this machine. Choose another, such as 127.0.0.1 or 0.0.0.0.`;
    }
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
