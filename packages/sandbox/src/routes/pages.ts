import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { html } from 'hono/html';
import { formatCents } from '../amounts.ts';
import { notFound } from '../errors.ts';
import { type App, type Ctx, pathId } from '../http.ts';
import { ledgerAccount } from '../ledger.ts';
import type { Seeded } from '../seed.ts';
import type { Transaction } from '../state.ts';
import { formatTimestamp } from '../timestamps.ts';
import type { World } from '../world.ts';

/** The page of docs/sandbox.md: beside what was built, or in the repository whose sources run. */
const BUILT_DOCS = new URL('../sandbox.md', import.meta.url);
const DOCS = existsSync(BUILT_DOCS) ? BUILT_DOCS : new URL('../../../../docs/sandbox.md', import.meta.url);

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

type Html = ReturnType<typeof html>;

/** What people look at: what this server is, its docs, and the receipt (CEP) of each penny validation. */
export function pageRoutes(app: App, world: World, seeded: readonly Seeded[]): void {
  app.get('/', (c) => page(c, 'Sandbox', home(world, seeded)));
  app.get('/docs', async (c) =>
    c.body(await readFile(DOCS), 200, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }),
  );
  app.get('/cep/:validationId', (c) => {
    const id = pathId(c, 'validationId');
    const validation = world.state.transactions.values().find(({ cep }) => cep?.validationId === id);
    if (validation === undefined) throw notFound('cep_not_found');
    return page(c, 'Comprobante Electrónico de Pago', receipt(world, validation));
  });
}

function home(world: World, seeded: readonly Seeded[]): Html {
  const { clock, ledger } = world;
  return html`
    <h1>The sandbox</h1>
    <p>
      The transfer-and-account service in a box: all of its endpoints under <code>/v1</code>, a ledger in double entry, and
      webhooks that are really sent. No real money moves, and nothing outlives this process.
    </p>
    <h2>Clock</h2>
    <p>
      It is <b>${formatTimestamp(clock.now(), 'iso')}</b> here.
      ${clock.speed === 0 ? 'Time stands still until it is stepped.' : `Time runs ${clock.speed} times as fast as yours.`}
    </p>
    <h2>Clients</h2>
    ${seeded.map(
      ({ client, accounts }) => html`
        <h3>${client.name} <code>${client.id}</code></h3>
        <table>
          <tr><th>Account</th><th>CLABE</th><th class="amount">Available</th></tr>
          ${accounts.map(
            ({ id, instrumentId, clabeNumber }) => html`
              <tr>
                <td>${world.state.instruments.get(instrumentId)?.alias ?? ''}</td>
                <td><code>${clabeNumber}</code></td>
                <td class="amount">${formatCents(ledger.balance(ledgerAccount(id)))} MXN</td>
              </tr>
            `,
          )}
        </table>
      `,
    )}
    <h2>Where to go on</h2>
    <ul>
      <li><a href="/sandbox">/sandbox</a>: credentials, ids and CLABEs, as JSON</li>
      <li><a href="/sandbox/ledger">/sandbox/ledger</a>: every movement of money</li>
      <li><a href="/sandbox/deliveries">/sandbox/deliveries</a>: every webhook that was sent, with its replies</li>
      <li><a href="/sandbox/requests">/sandbox/requests</a>: which endpoints were called, how often</li>
      <li><a href="/docs">/docs</a>: how to let credits arrive, time pass and calls fail</li>
    </ul>
  `;
}

/** In the words of Banco de México's own receipt, and with a notice that it is none. */
function receipt({ state }: World, validation: Transaction): Html {
  const { cep, source, destination, amount, trackingId } = validation;
  const bank = (id: string) => state.banks.get(id)?.name ?? id;
  const clabe = (detail: Transaction['source']['detail']) =>
    detail.kind === 'clabe' ? detail.clabeNumber : '';
  const rows: readonly (readonly [label: string, value: string])[] = [
    ['Estado', cep?.status ?? ''],
    ['Clave de rastreo', trackingId],
    ['Monto', `$${formatCents(amount)} MXN`],
    ['Institución emisora', bank(source.bankId)],
    ['Institución receptora', bank(destination.bankId)],
    ['Cuenta beneficiaria', clabe(destination.detail)],
    ['Nombre del beneficiario', cep?.beneficiaryName ?? 'Pendiente'],
    ['RFC del beneficiario', cep?.beneficiaryRfc ?? 'Pendiente'],
    ['Procesado', cep?.processedAt === undefined ? 'Pendiente' : formatTimestamp(cep.processedAt, 'iso')],
  ];
  return html`
    <h1>Comprobante Electrónico de Pago</h1>
    <p class="notice">Sandbox: a receipt for show. No money has moved, and Banco de México knows nothing of it.</p>
    <table>
      ${rows.map(([label, value]) => html`<tr><th scope="row">${label}</th><td>${value}</td></tr>`)}
    </table>
  `;
}

function page(c: Ctx, title: string, body: Html): Response | Promise<Response> {
  return c.html(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <title>${title}</title>
          <style>
            :root { color-scheme: light dark; --line: light-dark(#d9e2dd, #2c3a34); --green: light-dark(#0b7a53, #4fd1a1); }
            body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem;
              background: light-dark(#fff, #101714); color: light-dark(#14201b, #e4ece8); }
            h1 { color: var(--green); line-height: 1.2; } h2 { margin-top: 2rem; } h3 { margin-bottom: 0.25rem; }
            a { color: var(--green); } code { font-size: 0.875em; overflow-wrap: anywhere; }
            table { border-collapse: collapse; width: 100%; }
            th, td { text-align: left; padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
            .amount { text-align: right; font-variant-numeric: tabular-nums; }
            .notice { border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.5rem 0.75rem; }
          </style>
        </head>
        <body>${body}</body>
      </html>`,
    200,
    HEADERS,
  );
}
