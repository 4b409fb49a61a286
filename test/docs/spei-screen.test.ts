import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { control } from '../helpers/gateway.ts';
import { folder, installWithClient } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { compile, page } from './client-pages.ts';
import { Client } from './page-program.ts';
import { blocks } from './pages.ts';
import { presses } from './screens.ts';

const PACKAGES = 'test/clients';

let gateway: RestartableGateway;
let work: string;
beforeAll(async () => {
  await installWithClient(PACKAGES);
  gateway = await startRestartable();
  work = await mkdtemp(folder(`${PACKAGES}/run-`));
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

/** Returns the lines of a side of a change, without the sign that each begins with. */
const side = (change: string, sign: string) =>
  change
    .replaceAll(new RegExp(`^(?!\\${sign}).*\n?`, 'gm'), '')
    .replaceAll(new RegExp(`^\\${sign}`, 'gm'), '');

/** Makes the changes that docs/clients/apollo.md shows, "The same screen by SPEI". */
function bySpei(code: string, name: string): string {
  if (name !== 'first-screen.tsx') return code;
  const changes = blocks(page, 'diff').flatMap(({ text }) => text.split(/\n\n/));
  expect(changes.length).toBeGreaterThan(8);
  return changes.reduce((screen, change) => {
    const before = side(`${change.trimEnd()}\n`, '-');
    expect(screen.split(before).length, change).toBe(2);
    return screen.replace(before, () => side(`${change.trimEnd()}\n`, '+'));
  }, code);
}

it('the whole first screen pays by SPEI with the changes of the page, and shows what was never paid, and the tracking key', async () => {
  await compile(work, 'nodenext', { noEmit: false, rootDir: '.', outDir: work }, bySpei);
  await writeFile(
    join(work, 'session.js'),
    `export const session = {
  graphql: '${gateway.graphql}',
  token: async () => (await (await fetch('${gateway.sandbox.url}/sandbox')).json()).accessToken,
};`,
  );
  const { centralizingInstrumentId, cardInstrumentIds } = await control(gateway.sandbox, 'GET', '/sandbox');
  const form = {
    sourceInstrumentId: centralizingInstrumentId,
    destinationInstrumentId: cardInstrumentIds[0],
    amount: '12.50',
    description: 'Factura 42',
  };
  const unpaid = {
    idempotencyKey: 'unpaid-before',
    mutation: 'createMoneyOut',
    input: { ...form, externalReference: '1234567' },
    createdAt: new Date().toISOString(),
    unanswered: 0,
  };
  const steps = [
    ['Nothing was paid', 'Send it'],
    ['It is on its way.', '', 'OK'],
    ['Its tracking key is', 'OK', 'not known yet'],
    ['Live.', 'Pay', 'Nothing was paid'],
    ['It is on its way.', '', 'OK'],
  ] as const;
  const kept = JSON.stringify([['payments of ana', JSON.stringify([unpaid])]]);
  const runner = presses({ ...form, externalReference: '7654321' }, steps);
  await writeFile(
    join(work, 'runner.js'),
    runner.replace('new Map()', () => `new Map(${kept})`),
  );
  // The sandbox's clock would settle the payment before the app asks for its first state.
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  const screen = new Client('runner', work);
  const tells = (told: number) =>
    expect
      .poll(async () => (await screen.kept()).join())
      .toContain(
        steps
          .slice(0, told)
          .map(([text]) => text)
          .join('\n'),
      );
  try {
    await screen.start();
    await tells(2);
    await control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 60 });
    await tells(steps.length);
  } finally {
    await screen.kill();
  }
});
