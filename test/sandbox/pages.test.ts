import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { makeClabe } from '../../packages/sandbox/src/clabe.ts';
import { createSandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { expectRefusal, openSandbox } from './harness.ts';

/** The files of the pages. */
const PAGE = new URL('../../packages/sandbox/page/', import.meta.url);

/** What answers beneath them. */
const SANDBOX = new URL('../../packages/sandbox/src/', import.meta.url);

/** All files of a folder and of those in it, as one text. */
async function sourcesIn(folder: URL): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  return (await Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))).join('\n');
}

/** The query parameters of docs/upstream-api.md, each with the number of its endpoint before it. */
async function documentedQueries(): Promise<readonly string[]> {
  const page = await readFile(new URL('../../docs/upstream-api.md', import.meta.url), 'utf8');
  const rows = page.matchAll(/^\| (\d+) \|.*\bquery (`.*?) \|$/gm);
  return [...rows].flatMap(([, number, cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => `${number} ${name}`),
  );
}

const started = z.object({
  id: z.string(),
  metadata: z.object({ dataCep: z.object({ cepUrl: z.url() }) }),
});

describe('the pages of the sandbox', () => {
  it('are files that run as they are, and every address in them leads somewhere', async () => {
    await using box = await openSandbox();
    for (const path of ['/', '/docs']) {
      const page = await box.call('GET', path, undefined, {});
      expect(page.status).toBe(200);
      expect(page.contentType).toContain('text/html');
      const links = [...page.text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = '']) => link);
      expect(links.length).toBeGreaterThan(2);
      for (const link of links) expect((await box.call('GET', link, undefined, {})).status).toBe(200);
    }
    expect((await box.call('GET', '/docs/guide', undefined, {})).text).toMatch(/^# The sandbox/);
    for (const name of ['none.js', 'tsconfig.json', '..%2fpackage.json']) {
      expectRefusal(await box.call('GET', `/page/${name}`, undefined, {}), { status: 404 });
    }
  });

  it('know every endpoint of the service, with a body that it takes', async () => {
    await using box = await createSandbox({ seed: 7 });
    const reference = z.object({
      apiKey: z.string(),
      accessToken: z.string(),
      entries: z.array(
        z.object({
          number: z.number().nullable(),
          method: z.string(),
          path: z.string(),
          auth: z.enum(['token', 'key']).nullable(),
          parameters: z.record(z.string(), z.string()),
          query: z.record(z.string(), z.string()),
          body: z.unknown(),
        }),
      ),
    });
    const webhook = await fetch(`${box.url}/v1/clients/${box.clientId}/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${box.accessToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        client_id: box.clientId,
        url: 'http://127.0.0.1:9/hook',
        token: 'a token',
        webhook_type: 'CEP',
      }),
    });
    expect(webhook.status).toBe(201);
    const read = await (await fetch(`${box.url}/docs/reference`)).json();
    const { apiKey, accessToken, entries } = reference.parse(read);
    const service = entries.filter(({ number }) => number !== null);
    expect(service.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...box.endpoints].sort());
    const queries = service.flatMap(({ number, query }) =>
      Object.keys(query).map((name) => `${number} ${name}`),
    );
    expect(queries.toSorted()).toEqual((await documentedQueries()).toSorted());
    expect(queries).toContain('8 customer_id');
    for (const { method, path, auth, parameters, query, body } of entries) {
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => parameters[name] ?? '');
      // As the page does, which leaves out what is empty.
      const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
      const address = asked.size === 0 ? filled : `${filled}?${asked}`;
      const { status } = await fetch(box.url + address, {
        method,
        headers: {
          ...(auth === 'token' ? { authorization: `Bearer ${accessToken}` } : {}),
          ...(auth === 'key' ? { 'x-api-key': apiKey } : {}),
          ...(body === null ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === null ? {} : { body: JSON.stringify(body) }),
      });
      expect(status, `${method} ${address}`).toBeLessThan(300);
      await fetch(`${box.url}/sandbox/faults`, { method: 'DELETE' });
    }
  });

  it('show the receipt in Spanish throughout, before and after it was issued', async () => {
    await using box = await openSandbox();
    const made = await box.post('/v1/transactions/penny_validation', {
      client_id: box.sandbox.clientId,
      source_instrument_id: box.sandbox.centralizing.instrumentId,
      destination_instrument_id: box.sandbox.clabeInstrumentIds[0],
      description: 'Alta de proveedor',
    });
    const { cepUrl } = made.as(started).metadata.dataCep;
    expect(cepUrl.startsWith(`${box.sandbox.url}/cep/`)).toBe(true);
    const path = cepUrl.slice(box.sandbox.url.length);
    expect((await box.get(path)).text).toContain('Pendiente');
    await box.step(100);
    const { text } = await box.get(path);
    expect(text).toContain('<html lang="es-MX">');
    expect(text).toContain('Liquidado');
    expect(text).not.toContain('Pendiente');
    expect(text).toMatch(/Ordenante[\s\S]*Comercializadora Alameda SA de CV[\s\S]*Beneficiario/);
    expect(text).toMatch(/Concepto del pago<\/th><td>Alta de proveedor/);
    expect(text.replaceAll(/<[^>]+>/g, ' ')).not.toMatch(/\b(the|of|status|amount|COMPLETED|PENDING)\b/);
    expectRefusal(await box.get('/cep/1c1f6f0e-0000-4000-8000-000000000000'), {
      status: 404,
      reason: 'cep_not_found',
    });
  });

  it('let no name in them become markup', async () => {
    await using box = await openSandbox();
    const made = await box.post('/v1/transactions/penny_validation', {
      client_id: box.sandbox.clientId,
      source_instrument_id: box.sandbox.centralizing.instrumentId,
      destination_instrument_id: (
        await box.post(box.of('/instruments'), {
          source_bank_id: box.seeded.bankIds[0],
          client_id: box.sandbox.clientId,
          type: 'RECEIVER',
          rfc: 'ND',
          alias: 'markup',
          virtual_clabe: {
            destination_bank_id: box.seeded.bankIds[0],
            clabe_number: makeClabe('012', '180', '01234567890'),
            holder_name: '<script>alert(1)</script>',
          },
        })
      ).as(z.object({ id: z.string() })).id,
    });
    const { cepUrl } = made.as(started).metadata.dataCep;
    await box.step(100);
    const { text } = await box.get(cepUrl.slice(box.sandbox.url.length));
    expect(text.toUpperCase()).toContain('&LT;SCRIPT');
    expect(text.toUpperCase()).not.toContain('<SCRIPT');
  });

  it('say everything in Spanish too', async () => {
    const { SPANISH } = await import('../../packages/sandbox/page/spanish.js');
    const said = new Set<string>();
    for (const name of await readdir(PAGE)) {
      if (!name.endsWith('.js')) continue;
      const source = await readFile(new URL(name, PAGE), 'utf8');
      for (const [, text = ''] of source.matchAll(/\bt\(\s*'((?:[^'\\]|\\.)*)'/g)) said.add(text);
      // Sentences for the reasons that the sandbox gives by a name.
      for (const [, text = ''] of source.matchAll(/^ {2}[a-z_]+: '([A-Z][^']*\.)',$/gm)) said.add(text);
    }
    const known = Object.keys(SPANISH);
    expect([...said].filter((text) => !known.includes(text))).toEqual([]);
    // All else are reasons as the sandbox itself says them.
    const sandbox = await sourcesIn(SANDBOX);
    const unsaid = known.filter((text) => !said.has(text) && !sandbox.includes(text));
    expect(unsaid).toEqual([]);
  });
});

it('a credit is sent back by /sandbox/refunds: the one that is named, or the latest', async () => {
  await using box = await openSandbox();
  const clabe = box.seeded.accounts[0]?.clabe;
  const credit = (amount: string) => box.post('/sandbox/spei-credits', { clabe, amount });
  const sent = z.object({ transaction: z.object({ id: z.string() }) });
  const [first] = [(await credit('1.00')).as(sent), (await credit('2.00')).as(sent)];
  const refund = z.object({ refund: z.object({ amount: z.string(), originalTransactionId: z.string() }) });
  expect((await box.post('/sandbox/refunds', {})).as(refund).refund.amount).toBe('2.00');
  const named = await box.post('/sandbox/refunds', { transactionId: first?.transaction.id });
  expect(named.status).toBe(201);
  expect(named.as(refund).refund.originalTransactionId).toBe(first?.transaction.id);
  expectRefusal(await box.post('/sandbox/refunds', { transactionId: first?.transaction.id }), {
    status: 400,
  });
  expect((await box.ledger()).balanced).toBe(true);
});

it('a token outlives a restart with the same seed, and no other', async () => {
  const before = await startSandbox({ port: 0, speed: 0, seed: 3 });
  await before.stop();
  const asked = async (seed: number) => {
    await using after = await startSandbox({ port: 0, speed: 0, seed });
    const { status } = await fetch(`${after.url}/v1/clients/${after.clientId}/accounts`, {
      headers: { authorization: `Bearer ${before.accessToken}` },
    });
    return status;
  };
  expect(await asked(3)).toBe(200);
  expect(await asked(4)).toBe(401);
});
