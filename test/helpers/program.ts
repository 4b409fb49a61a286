import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { programOf } from './entry.ts';
import { until } from './until.ts';

export interface Program extends AsyncDisposable {
  readonly process: ChildProcess;
  /** Everything written so far. */
  output(): string;
  /** The first match in what is written, now or later; fails when the program ends without it. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  /** The exit code, once the program has ended by itself. */
  exited(): Promise<number | null>;
  /** Sends a signal and resolves with the exit code once the program is gone. */
  end(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Runs one of the project's programs as a person would: a process of its own, told everything by its environment. */
export function startProgram(
  file: string,
  environment: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Program {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [...programOf(file), ...args], {
    env: { PATH, HOME, ...environment },
  });
  let written = '';
  const collect = (chunk: Buffer) => {
    written += chunk.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const gone = once(child, 'exit');
  const isRunning = () => child.exitCode === null && child.signalCode === null;

  const end = async (signal: NodeJS.Signals = 'SIGINT') => {
    if (isRunning()) child.kill(signal);
    await gone;
    return child.exitCode;
  };
  return {
    process: child,
    output: () => written,
    async says(pattern) {
      await until(() => pattern.test(written) || !isRunning());
      const match = pattern.exec(written);
      if (match === null) throw new Error(`The program ended without saying ${pattern}:\n${written}`);
      return match;
    },
    async exited() {
      await gone;
      return child.exitCode;
    },
    end,
    async [Symbol.asyncDispose]() {
      await end('SIGKILL');
    },
  };
}

/** The addresses of a gateway on its embedded sandbox, from what it prints. */
export async function demoAddresses(
  program: Program,
): Promise<{ gateway: string; sandbox: string; token: string }> {
  const [, gateway = ''] = await program.says(/GraphiQL +(http:\S+)\/graphql/);
  const [, sandbox = ''] = await program.says(/Sandbox +(http:\/\/[^\s/]+)/);
  const [, token = ''] = await program.says(/TOKEN=(\S+)/);
  return { gateway, sandbox, token };
}
