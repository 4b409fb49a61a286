import { fork } from 'node:child_process';
import type { Aside } from './aside.ts';
import { endWithThisProcess } from './process.ts';
import { programFile } from './stub.ts';

/** Resolves once the first requests of a load in a process of its own are answered. `end` ends it, and tells how many were. */
export async function startAside(aside: Aside): Promise<{ end(): number }> {
  const child = fork(programFile('lib/aside.ts'));
  endWithThisProcess(child);
  let served = 0;
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The load aside ended with ${code}.`)));
    child.on('message', (count) => {
      served += Number(count);
      resolve();
    });
    child.send(aside);
  });
  return {
    end() {
      child.kill('SIGKILL');
      return served;
    },
  };
}
