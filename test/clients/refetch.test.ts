import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { folder, installPackages, run } from '../helpers/packages.ts';

let gateway: RunningGateway;
let work: string;
beforeAll(async () => {
  await installPackages('test/clients');
  gateway = await startGateway({ webhooks: false, config: { ...PATIENT, upstreamReport: true } });
  // Packages are found from here.
  work = await mkdtemp(folder('test/clients/run-'));
});
afterAll(async () => {
  await gateway?.stop();
  if (work !== undefined) await rm(work, { recursive: true, force: true });
});

it("Relay's runtime refetches every noun by its id with one look-up, and pages a connection to its end", async () => {
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  await copyFile(folder('test/clients/refetch.js'), join(work, 'refetch.js'));
  const config = { src: '.', schema: 'schema.graphql', language: 'javascript', eagerEsModules: true };
  await writeFile(join(work, 'relay.config.json'), JSON.stringify(config));
  await run(folder('test/clients/node_modules/.bin/relay-compiler'), [], work);
  // A bundler finds a file without its extension; Node wants it.
  const generated = join(work, '__generated__');
  for (const name of await readdir(generated)) {
    const artifact = await readFile(join(generated, name), 'utf8');
    await writeFile(join(generated, name), artifact.replaceAll(/(\.\/\w+\.graphql)(?=['"])/g, '$1.js'));
  }
  await run(process.execPath, [folder('test/clients/compile-relay.js'), join(work, 'refetch.js')], work);

  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  const world: any = await control(gateway.sandbox, 'GET', '/sandbox');
  const ids = {
    customer: world.customerIds[0],
    account: world.accounts[0].id,
    instrument: world.instruments[0].id,
    transaction: Object.values(world.transactions)[0],
  };
  const written = await run(
    process.execPath,
    [join(work, 'refetch.js'), gateway.graphql, gateway.sandbox.accessToken, JSON.stringify(ids)],
    work,
  );
  const { refetched, instruments } = JSON.parse(written);
  for (const [name, id] of Object.entries(ids)) expect(refetched[name].data.id).toBe(id);
  expect(refetched.client.data.id).toBe(gateway.sandbox.clientId);
  expect(refetched.customer.routes).toEqual(['/v1/clients/{clientId}/customers']);
  expect(refetched.account.routes).toEqual(['/v1/clients/{clientId}/accounts']);
  expect(refetched.instrument.routes).toEqual(['/v1/clients/{clientId}/instruments/{instrumentId}']);
  expect(refetched.transaction.routes).toEqual(['/v1/clients/{clientId}/transactions/{transactionId}']);
  expect(instruments.toSorted()).toEqual(world.instruments.map(({ id }: { id: string }) => id).toSorted());
});

it("Apollo Client's persisted-query link sends the text where no documents are listed, and from then on at once", async () => {
  const written = await run(
    process.execPath,
    [folder('test/clients/persisted.js'), gateway.graphql, gateway.sandbox.accessToken],
    work,
  );
  const { clientId } = gateway.sandbox;
  expect(JSON.parse(written)).toEqual({ ids: [clientId, clientId], texts: [false, true, true] });
});
