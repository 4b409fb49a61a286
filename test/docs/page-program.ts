import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endWithThisProcess } from '../helpers/redis.ts';

/** What a process has written of a line as it is killed. */
const IN_PART = '\n{"in":"part';

/** A client's program, in a folder of its own. */
export class Client {
  readonly name: string;
  readonly #program: string;
  readonly #cwd: string;
  #process: ChildProcess | undefined;
  #output = '';

  constructor(name: string, work: string) {
    this.name = name;
    this.#program = join(work, `${name}.js`);
    this.#cwd = join(work, name);
  }

  async start(): Promise<void> {
    await mkdir(this.#cwd, { recursive: true });
    const child = spawn(process.execPath, [this.#program], { cwd: this.#cwd });
    endWithThisProcess(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        this.#output += String(chunk);
      });
    }
    this.#process = child;
  }

  async kill(): Promise<void> {
    if (this.#process === undefined || this.#process.exitCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }

  /** Kills it amid a line of what it keeps. */
  async killWriting(): Promise<void> {
    await this.kill();
    await appendFile(join(this.#cwd, 'credits.jsonl'), IN_PART);
  }

  /**
   * What it has kept, in order: where it began, what each credit was for, and where it was told of a gap. A cursor that was
   * saved later without a credit, which is a bookmark of the gateway, is left out: how many there are depends on the time.
   */
  async kept(): Promise<string[]> {
    const file = join(this.#cwd, 'credits.jsonl');
    if (!existsSync(file)) return [this.#output];
    const text = (await readFile(file, 'utf8')).replaceAll(IN_PART, '');
    const lines = text.split('\n').slice(1);
    const kept = lines.map((line) => {
      const { gap, paymentConcept } = JSON.parse(line) as { gap?: boolean; paymentConcept?: string };
      return gap === true ? 'gap' : (paymentConcept ?? 'start');
    });
    return kept.filter((what, index) => what !== 'start' || index === 0);
  }
}
