import { ConfigError } from './config.ts';

/** Something that is open and must be closed when the process ends. */
export type Closer = () => Promise<unknown>;

/**
 * Runs a program until a signal: what it opens is closed last opened first, at SIGINT and SIGTERM as well as when its
 * start fails. A second signal ends the process at once. A failed start is explained in one message, with exit code 1.
 *
 * @param start opens things, handing each one's closer to `opened`.
 */
export async function runProgram(start: (opened: (closer: Closer) => void) => Promise<void>): Promise<void> {
  const closers: Closer[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
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
    await start((closer) => closers.push(closer));
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
  if (error instanceof Error && 'code' in error && 'port' in error) {
    const { code, port } = error;
    const address = 'address' in error ? `${String(error.address)}:${String(port)}` : String(port);
    if (code === 'EADDRINUSE') {
      return `${address} is in use by another process. Choose other ports with PORT and SANDBOX_PORT.`;
    }
    if (code === 'EACCES') return `${address} needs rights that this process lacks. Choose a port over 1023.`;
    if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine. Choose another HOST.`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
