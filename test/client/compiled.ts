import { copyFile, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { folder, installPackages, run } from '../helpers/packages.ts';
import { EVENTS } from './bindings.ts';

const PACKAGES = 'test/clients';

/** Lets relay-compiler compile the subscription that the bindings follow. `work` is to be removed. */
export async function prepareCompiled(): Promise<{ readonly compiled: string; readonly work: string }> {
  await installPackages(PACKAGES);
  const work = await mkdtemp(folder(`${PACKAGES}/run-`));
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  await writeFile(join(work, 'outages.js'), `graphql\`${EVENTS}\`;`);
  const config = { src: '.', schema: 'schema.graphql', language: 'javascript', eagerEsModules: true };
  await writeFile(join(work, 'relay.config.json'), JSON.stringify(config));
  await run(folder(`${PACKAGES}/node_modules/.bin/relay-compiler`), [], work);
  const module = join(work, '__generated__/outagesEventsSubscription.graphql.js');
  return { compiled: pathToFileURL(module).href, work };
}
