import { copyFile, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { folder, installPackages, run } from '../helpers/packages.ts';
import { EVENTS } from './bindings.ts';
import { UNREAD_RELAY } from './unread.ts';

const PACKAGES = 'test/clients';

/** relay-compiler's modules, by their addresses. */
export interface Compiled {
  /** Of the subscription that the bindings follow. */
  readonly documented: string;
  /** Of the one that is written without reading. */
  readonly unread: string;
}

/** Lets relay-compiler compile the subscriptions of the programs. `work` is to be removed. */
export async function prepareCompiled(): Promise<{ readonly compiled: Compiled; readonly work: string }> {
  await installPackages(PACKAGES);
  const work = await mkdtemp(folder(`${PACKAGES}/run-`));
  await copyFile(folder('schema.graphql'), join(work, 'schema.graphql'));
  await writeFile(join(work, 'outages.js'), `graphql\`${EVENTS}\`;`);
  await writeFile(join(work, 'unread.js'), `graphql\`${UNREAD_RELAY}\`;`);
  const config = { src: '.', schema: 'schema.graphql', language: 'javascript', eagerEsModules: true };
  await writeFile(join(work, 'relay.config.json'), JSON.stringify(config));
  await run(folder(`${PACKAGES}/node_modules/.bin/relay-compiler`), [], work);
  const module = (name: string) => pathToFileURL(join(work, `__generated__/${name}.graphql.js`)).href;
  const compiled = {
    documented: module('outagesEventsSubscription'),
    unread: module('unreadEventsSubscription'),
  };
  return { compiled, work };
}
