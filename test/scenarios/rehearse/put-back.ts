import { execFile } from 'node:child_process';
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { inStep } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';
import { rejoin, rolesOf, type Stage } from './stage.ts';
import { LASTS_MS, passwordOf, type Step } from './step.ts';

/** Where Redis keeps its append-only files, beneath its folder. */
const FILES = 'appendonlydir';

/** Lets payments go on, as an operator does who has looked. */
async function resumePayments({ environment, members: [{ url, dataDir }] }: Stage): Promise<void> {
  const { PATH = '', HOME = '' } = process.env;
  const own = { PATH, HOME, ...environment, PORT: new URL(url).port, DATA_DIR: dataDir };
  const ask = (...verb: string[]) =>
    new Promise<string>((resolve) => {
      const args = ['src/cli/pasarela.ts', 'payments', ...verb];
      execFile(process.execPath, args, { env: own, timeout: 300_000 }, (_error, text) => resolve(text));
    });
  await ask('status');
  await ask('resume', '--put-back');
}

export const PUT_BACK: Step = {
  name: 'a store put back',
  done: 'The files of Redis are copied; some seconds later every Redis is killed, and begins again from the copy. An operator lets payments go on.',
  async run(stage) {
    const { primary, replica } = await rolesOf(stage.store);
    const copy = join(stage.folder, 'copy');
    await cp(join(primary.dir, FILES), copy, { recursive: true });
    await pause(LASTS_MS);
    await stage.store.sentinel.kill();
    for (const server of [primary, replica]) {
      await server.kill();
      await rm(join(server.dir, FILES), { recursive: true, force: true });
      await cp(copy, join(server.dir, FILES), { recursive: true });
    }
    await primary.start();
    await primary.admin.replicaof('NO', 'ONE');
    await primary.admin.acl('SETUSER', 'gateway', 'on', `>${passwordOf(stage)}`, '~*', '&*', '+@all');
    await rejoin(replica, primary, passwordOf(stage));
    await inStep(primary, replica);
    await stage.store.sentinel.start();
    await pause(LASTS_MS);
    const isHeld = async ({ url }: { url: string }) =>
      (await (await fetch(`${url}/readyz`)).text()).includes('"paymentsHeld":true');
    const held = await Promise.all(stage.members.map(isHeld));
    if (!held.includes(true)) return;
    await resumePayments(stage);
    for (const member of stage.members) await until(async () => !(await isHeld(member)));
  },
};
