import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Control } from '../control.ts';
import { notFound } from '../errors.ts';
import { type App, type Ctx, pathId } from '../http.ts';
import { receiptPage } from '../receipt-page.ts';
import { reference } from '../reference.ts';
import type { World } from '../world.ts';

/** The page of docs/sandbox.md: beside what was built, or in the repository whose sources run. */
const BUILT_DOCS = new URL('../sandbox.md', import.meta.url);
const DOCS = existsSync(BUILT_DOCS) ? BUILT_DOCS : new URL('../../../../docs/sandbox.md', import.meta.url);
/** The files of the pages, which run in a browser as they are. */
const BUILT_FILES = new URL('../page/', import.meta.url);
const FILES = existsSync(BUILT_FILES) ? BUILT_FILES : new URL('../../page/', import.meta.url);

const NAME = /^[a-z-]+\.(js|css)$/;

const HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** What people look at: the console, the reference, and the receipt (CEP) of each penny validation. */
export function pageRoutes(app: App, world: World, control: Control): void {
  const file = async (c: Ctx, name: string, type: string) =>
    c.body(await readFile(new URL(name, FILES)), 200, {
      ...HEADERS,
      'content-type': `${type}; charset=utf-8`,
    });

  app.get('/', (c) => file(c, 'console.html', 'text/html'));
  app.get('/docs', (c) => file(c, 'docs.html', 'text/html'));
  app.get('/docs/guide', async (c) =>
    c.body(await readFile(DOCS), 200, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }),
  );
  app.get('/docs/reference', async (c) => {
    const [demo] = await control.clients();
    if (demo === undefined) throw notFound('client_not_found');
    const webhook = world.state.webhooks.made(demo.clientId).find(({ deletedAt }) => deletedAt === undefined);
    const creditId = control.latestRefundable()?.id ?? demo.transactions.refundedCreditId;
    const { apiKey, accessToken } = demo;
    const entries = reference(demo, { webhookId: webhook?.id ?? '', creditId });
    return c.json({ apiKey, accessToken, entries });
  });
  app.get('/page/:name', (c) => {
    const name = pathId(c, 'name');
    if (!NAME.test(name) || !existsSync(new URL(name, FILES))) throw notFound('file_not_found');
    return file(c, name, name.endsWith('.css') ? 'text/css' : 'text/javascript');
  });
  app.get('/cep/:validationId', (c) => {
    const id = pathId(c, 'validationId');
    const validation = world.state.transactions.values().find(({ cep }) => cep?.validationId === id);
    if (validation === undefined) throw notFound('cep_not_found');
    return c.html(receiptPage(world, validation), 200, HEADERS);
  });
}
