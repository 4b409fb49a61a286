import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { openTrustedDocuments } from '../../src/app/trusted-documents-file.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';
import { pasarela } from './run.ts';

it('the commands run at a gateway that lists what they send, and nothing else', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-documents-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const { stdout } = await pasarela(['schema', '--command-documents']);
  const schema = buildSchema();
  for (const text of Object.values<string>(JSON.parse(stdout)))
    expect(validate(schema, parse(text))).toEqual([]);

  const file = join(folder, 'commands.json');
  await writeFile(file, stdout);
  const gateway = await startGateway({ config: { trustedDocuments: openTrustedDocuments([file]) } });
  cleanup.defer(() => gateway.stop());
  const environment = {
    PORT: new URL(gateway.url).port,
    PASARELA_TOKEN: gateway.sandbox.accessToken,
    DATA_DIR: folder,
  };
  const [{ id, clabe }] = (await control(gateway.sandbox, 'GET', '/sandbox')).accounts;
  const credit = () => control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '2.00' });
  await credit();
  const found = await pasarela(['events', 'search', '--account', id], environment);
  expect(found).toMatchObject({ code: 0, stderr: expect.stringContaining('1 event.') });
  for (let run = 0; run < 2; run += 1)
    expect(await pasarela(['reconcile'], environment)).toMatchObject({ code: 0, stderr: '' });
  await using tail = startProgram('src/cli/pasarela.ts', environment, ['events', 'tail']);
  await tail.says(/Following/);
  await credit();
  await tail.says(/MONEY_IN +2\.00/);
  const received = join(folder, 'received');
  await mkdir(received);
  const to = ['--to', `file://${received}`, '--types', 'MONEY_IN'];
  await using forward = startProgram('src/cli/pasarela.ts', environment, ['events', 'forward', ...to]);
  await forward.says(/Forwarding/);
  await credit();
  await until(async () => (await readdir(received)).length > 0);
  expect(await gateway.query('{ __typename }')).toMatchObject({
    errors: [{ extensions: { code: 'FORBIDDEN' } }],
  });
});

it('a gateway that does not list them is named by its refusal, and events forward does not try on', async () => {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-documents-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const file = join(folder, 'none.json');
  await writeFile(file, '{}');
  const gateway = await startGateway({ config: { trustedDocuments: openTrustedDocuments([file]) } });
  cleanup.defer(() => gateway.stop());
  const environment = {
    PORT: new URL(gateway.url).port,
    PASARELA_TOKEN: gateway.sandbox.accessToken,
    DATA_DIR: folder,
  };
  const told = { code: 1, stderr: expect.stringContaining('FORBIDDEN') };
  expect(await pasarela(['events', 'forward', '--to', `file://${folder}`], environment)).toMatchObject(told);
  expect(await pasarela(['events', 'replay'], environment)).toMatchObject(told);
});
