import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { expectRefusal, openSandbox } from './harness.ts';

const started = z.object({
  id: z.string(),
  metadata: z.object({ dataCep: z.object({ cepUrl: z.url() }) }),
});

describe('the pages of the sandbox', () => {
  it('say at / what it is, whose accounts are in it, what time it is, and where to go on', async () => {
    await using box = await openSandbox();
    const page = await box.call('GET', '/', undefined, {});
    expect(page.status).toBe(200);
    expect(page.contentType).toContain('text/html');
    expect(page.text).toContain(box.sandbox.clientId);
    expect(page.text).toContain('Time stands still until it is stepped.');
    for (const { clabe } of box.seeded.accounts) expect(page.text).toContain(clabe);
    const links = [...page.text.matchAll(/href="([^"]+)"/g)].map(([, path = '']) => path);
    expect(links).toContain('/docs');
    for (const path of links) expect((await box.call('GET', path, undefined, {})).status).toBe(200);
  });

  it('show the receipt of a penny validation at its own address, before and after it was issued', async () => {
    await using box = await openSandbox();
    const made = await box.post('/v1/transactions/penny_validation', {
      client_id: box.sandbox.clientId,
      source_instrument_id: box.sandbox.centralizing.instrumentId,
      destination_instrument_id: box.sandbox.clabeInstrumentIds[0],
    });
    const { cepUrl } = made.as(started).metadata.dataCep;
    expect(cepUrl.startsWith(`${box.sandbox.url}/cep/`)).toBe(true);
    const path = cepUrl.slice(box.sandbox.url.length);
    expect((await box.get(path)).text).toContain('Pendiente');
    await box.step(100);
    const { text } = await box.get(path);
    expect(text).toContain('COMPLETED');
    expect(text).not.toContain('Pendiente');
    expectRefusal(await box.get('/cep/1c1f6f0e-0000-4000-8000-000000000000'), {
      status: 404,
      reason: 'cep_not_found',
    });
  });

  it('let no name in them become markup', async () => {
    await using box = await openSandbox();
    await box.post(box.of('/private_accounts'), { alias: '<script>alert(1)</script>' });
    expect((await box.get('/')).text).not.toContain('<script');
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
