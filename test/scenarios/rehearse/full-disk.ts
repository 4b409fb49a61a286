import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Member } from './member.ts';
import { LASTS_MS, type Step } from './step.ts';

const PIECE = Buffer.alloc(4_096);
const fillerOf = ({ dataDir }: Member): string => join(dataDir, 'filler');

/** Writes until nothing more fits. */
async function fill(member: Member): Promise<void> {
  const file = await open(fillerOf(member), 'w');
  try {
    for (;;) await file.write(PIECE);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  } finally {
    await file.close();
  }
}

export const FULL_DISK: Step = {
  name: 'full disk, and Redis does not answer',
  done: 'SIGSTOP to every Redis while no `DATA_DIR` takes a byte more; then Redis goes on, and there is room again.',
  async run({ members, store }) {
    const full = members.filter(({ hasOwnDisk }) => hasOwnDisk);
    if (full.length < members.length)
      process.stderr.write('Only root can mount the disks that are filled: Redis alone does not answer.\n');
    for (const member of full) await fill(member);
    for (const server of [store.primary, store.replica]) server.freeze();
    await pause(LASTS_MS);
    for (const server of [store.primary, store.replica]) server.thaw();
    for (const member of full) await rm(fillerOf(member));
  },
};
