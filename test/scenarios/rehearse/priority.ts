import type { ChildProcess } from 'node:child_process';
import { setPriority } from 'node:os';

/** By how much a process comes before all others of the rehearsal where processors are short (nice). */
const BEFORE_OTHERS = -5;

/** Has a program come first, as in production it has a processor of its own. Only root may do so: without it nothing changes. */
export function putFirst({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, BEFORE_OTHERS);
  } catch {
    // Not root, or root without the right (CAP_SYS_NICE).
  }
}
