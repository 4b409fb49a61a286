import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Program, startProgram } from '../../helpers/program.ts';
import { endWithThisProcess } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { putFirst } from './priority.ts';

/** The file system of each gateway's `DATA_DIR`, where one of its own can be mounted. */
const DISK = 'size=48m,mode=0700';

/** One of the gateways. */
export interface Member {
  readonly name: string;
  readonly url: string;
  readonly dataDir: string;
  /** Whether its `DATA_DIR` is a small disk of its own, which can be filled. */
  readonly hasOwnDisk: boolean;
  /** What it is started from: this version, or an earlier one. */
  program: string;
  start(): Promise<void>;
  /** Ends it by a signal, and resolves once it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Ends it for good, with its disk. */
  remove(): Promise<void>;
}

const run = promisify(execFile);

interface MemberOptions {
  readonly name: string;
  readonly port: number;
  readonly folder: string;
  readonly lifetimeSeconds: number;
  readonly environment: Readonly<Record<string, string>>;
}

/** Makes a gateway that has not been started. */
export async function createMember({
  name,
  port,
  folder,
  lifetimeSeconds,
  environment,
}: MemberOptions): Promise<Member> {
  const url = `http://127.0.0.1:${port}`;
  const dataDir = join(folder, `data-${name}`);
  await mkdir(dataDir, { mode: 0o700 });
  const hasOwnDisk = await run('mount', ['-t', 'tmpfs', '-o', DISK, 'pasarela', dataDir]).then(
    () => true,
    () => false,
  );
  let running: Program | undefined;
  const member: Member = {
    name,
    url,
    dataDir,
    hasOwnDisk,
    program: 'src/start.js',
    async start() {
      const program = startProgram(member.program, { ...environment, PORT: String(port), DATA_DIR: dataDir });
      running = program;
      putFirst(program.process);
      endWithThisProcess(program.process, lifetimeSeconds);
      await until(async () => {
        if (program.process.exitCode !== null) throw new Error(`Gateway ${name} ended: ${program.output()}`);
        return (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true;
      });
    },
    async end(signal) {
      await running?.end(signal);
    },
    async remove() {
      await running?.end('SIGKILL');
      if (hasOwnDisk) await run('umount', [dataDir]);
    },
  };
  return member;
}
