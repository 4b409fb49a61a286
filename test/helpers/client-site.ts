import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { startBrowser } from './browser.ts';
import { compileClient } from './packages.ts';
import { serveFolder } from './static-server.ts';

interface ClientSite extends AsyncDisposable {
  readonly origin: string;
  readonly browser: Browser;
}

/** An empty page beside the modules of the client package, each at its name, such as `/index.js`, and a browser to open it with. */
export async function startClientSite(): Promise<ClientSite> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-client-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await compileClient(folder);
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>The client</title>');
  const { origin } = opened.use(await serveFolder(folder));
  const browser = await startBrowser();
  opened.defer(() => browser.close());
  const whole = opened.move();
  return { origin, browser, [Symbol.asyncDispose]: () => whole.disposeAsync() };
}
