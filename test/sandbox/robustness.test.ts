import { request } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { at, expectRefusal, type Opened, openSandbox, READINGS, transfer } from './harness.ts';

const UNKNOWN = '3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111';

const bodyEndpoints = ({ of, seeded }: Opened): [string, string][] => [
  ['POST', '/v1/transactions/money_out'],
  ['POST', '/v1/transactions/internal_transaction'],
  ['POST', '/v1/transactions/penny_validation'],
  ['POST', of(`/transactions/${seeded.transactions.refundableCreditId}/refund`)],
  ['POST', of('/private_accounts')],
  ['POST', of(`/customers/${at(seeded.customerIds, 0)}/private_accounts`)],
  ['POST', of('/instruments')],
  ['POST', of('/webhooks')],
  ['PATCH', of(`/webhooks/${UNKNOWN}`)],
  ['POST', '/v1/webhooks'],
  ['POST', '/sandbox/spei-credits'],
  ['POST', '/sandbox/clock'],
];

test('each endpoint of the service that takes a body is tried with hostile ones', async () => {
  await using box = await openSandbox();
  await using service = await createSandbox();
  const paths = bodyEndpoints(box).map(([method, path]) => `${method} ${path}`);
  const untried = service.endpoints.filter((endpoint) => {
    const route = new RegExp(`^${endpoint.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
    return /^(POST|PATCH) /.test(endpoint) && !paths.some((path) => route.test(path));
  });
  expect(untried, 'bodyEndpoints').toEqual(['POST /v1/clients/{clientId}/auth/credential-tokens']);
});

describe.each(READINGS)('hostile input, %s choices', (_name, choices) => {
  test.each([
    ['nothing', ''],
    ['no JSON', '{"a":'],
    ['a string', '"x"'],
    ['null', 'null'],
    ['a list', '[]'],
    ['nesting 100,000 deep', '['.repeat(100_000)],
    ['more than 1 MiB', JSON.stringify({ description: 'x'.repeat(1024 * 1024) })],
  ])('a body that is %s is 400 with the spec’s error body, at every endpoint', async (_what, body) => {
    await using box = await openSandbox(choices);
    for (const [method, path] of bodyEndpoints(box)) {
      expectRefusal(await box.call(method, path, body), { status: 400, reason: 'DATA_ERROR' });
    }
  });

  test('a body without a length is limited as well', async () => {
    await using box = await openSandbox(choices);
    const send = (chunks: string[]) =>
      new Promise<string>((resolve, reject) => {
        const path = '/v1/transactions/internal_transaction';
        const headers = {
          authorization: `Bearer ${box.sandbox.accessToken}`,
          'content-type': 'application/json',
        };
        const call = request(box.sandbox.url + path, { method: 'POST', headers }, (response) => {
          response.setEncoding('utf8');
          let text = `${response.statusCode} `;
          response.on('data', (chunk: string) => {
            text += chunk;
          });
          response.on('end', () => resolve(text));
        });
        call.on('error', reject);
        for (const chunk of chunks) call.write(chunk);
        call.end();
      });
    const whole = JSON.stringify(transfer(box, at(box.seeded.internalInstrumentIds, 2)));
    expect(await send([whole.slice(0, 20), whole.slice(20)])).toMatch(/^200 /);
    const tooMuch = Array<string>(17).fill(' '.repeat(64 * 1024));
    expect(await send(tooMuch)).toMatch(/^400 .*larger than 1048576 bytes/);
  });

  test('any JSON at any endpoint is refused or served, never a failure', async () => {
    await using box = await openSandbox(choices);
    const endpoints = bodyEndpoints(box).filter(([, path]) => path !== '/sandbox/clock');
    const valid = transfer(box, at(box.seeded.internalInstrumentIds, 2));
    const field = fc.constantFrom(
      ...Object.keys(valid),
      ...Object.keys(valid.transaction_request),
      ...['owner_id', 'bank_id', 'url', 'token', 'webhook_type', 'debit_card', 'virtual_clabe', '__proto__'],
    );
    const body = fc.oneof(
      fc.json(),
      fc.dictionary(field, fc.jsonValue()).map((change) => JSON.stringify({ ...valid, ...change })),
      fc
        .dictionary(field, fc.jsonValue())
        .map((change) =>
          JSON.stringify({ ...valid, transaction_request: { ...valid.transaction_request, ...change } }),
        ),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...endpoints), body, async ([method, path], text) => {
        const { status } = await box.call(method, path, text);
        expect(status).toBeLessThan(500);
      }),
      { numRuns: 400, seed: 20261120 },
    );
    expect((await box.ledger()).balanced).toBe(true);
  });

  test('any path is answered, and what is no route is 404', async () => {
    await using box = await openSandbox(choices);
    const paths = ['/v1', '/v1/', '/v1/nowhere', '/v2/banks', box.of('/dev/null/nowhere'), '/sandbox/x'];
    for (const path of paths) expectRefusal(await box.get(path), { status: 404 });
    expectRefusal(await box.call('PUT', '/v1/banks', {}), { status: 404 });
    for (const id of ['%E0%A4%A', '..%2f..', '%00', '%3f', 'x'.repeat(4_000), '__proto__']) {
      expectRefusal(await box.get(box.of(`/instruments/${id}`)), { status: 404 });
      expectRefusal(await box.get(box.of(`/transactions/${id}`)), { status: 404 });
    }
  });
});
