import { decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { at, expectRefusal, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

describe.each(READINGS)('credentials and tokens, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('the credentials list answers the API key with secrets in snake_case', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.call('GET', box.of('/credentials'), undefined, {
      'x-api-key': box.seeded.apiKey,
    });
    expect(reply.status).toBe(200);
    const { data } = reply.as(spec.credentials);
    expect(data.map(({ status }) => status)).toEqual(['ACTIVE', 'INACTIVE']);
    expect(at(data, 0)).toMatchObject({
      client_id: box.seeded.clientId,
      client_secret: box.seeded.clientSecret,
    });
  });

  test('an API key and a secret are exchanged for a JWT that opens the other endpoints', async () => {
    await using box = await openSandbox(choices);
    const { apiKey, clientId: client_id, clientSecret: client_secret } = box.seeded;
    const reply = await box.call(
      'POST',
      box.of('/auth/credential-tokens'),
      { client_id, client_secret },
      { 'x-api-key': apiKey },
    );
    expect(reply.status).toBe(200);
    const issued = reply.as(spec.credentialToken);
    expect(issued).toMatchObject({ client_id, status: 'ACTIVE' });
    expect(Object.values(decodeJwt(issued.token))).toContain(client_id);
    const used = await box.call('GET', '/v1/banks', undefined, { authorization: `Bearer ${issued.token}` });
    expect(used.status).toBe(200);
  });

  test('without credentials, or with those of the other kind, every endpoint answers 401', async () => {
    await using box = await openSandbox(choices);
    const bearer = { authorization: `Bearer ${box.seeded.accessToken}` };
    const key = { 'x-api-key': box.seeded.apiKey };
    const paths = ['/accounts', '/customers', '/instruments', '/webhooks'].map(box.of);
    for (const path of ['/v1/banks', ...paths]) {
      expectRefusal(await box.call('GET', path, undefined, {}), { status: 401 });
      expectRefusal(await box.call('GET', path, undefined, key), { status: 401 });
    }
    for (const path of ['money_out', 'internal_transaction', 'penny_validation']) {
      expectRefusal(await box.call('POST', `/v1/transactions/${path}`, {}, {}), { status: 401 });
    }
    expectRefusal(await box.call('GET', box.of('/credentials'), undefined, bearer), { status: 401 });
    expectRefusal(await box.call('POST', box.of('/auth/credential-tokens'), {}, bearer), { status: 401 });
    const [head, claims, signature = ''] = box.seeded.accessToken.split('.');
    // Another first character is another first byte; the last one also holds bits that count for nothing.
    const forged = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
    const broken = { authorization: `Bearer ${head}.${claims}.${forged}` };
    expectRefusal(await box.call('GET', '/v1/banks', undefined, broken), { status: 401 });
  });

  test('a wrong or inactive secret gets no token', async () => {
    await using box = await openSandbox(choices);
    const key = { 'x-api-key': box.seeded.apiKey };
    const { data } = (await box.call('GET', box.of('/credentials'), undefined, key)).as(spec.credentials);
    for (const client_secret of ['wrong', at(data, 1).client_secret]) {
      const body = { client_id: box.seeded.clientId, client_secret };
      expectRefusal(await box.call('POST', box.of('/auth/credential-tokens'), body, key), { status: 401 });
    }
  });

  test('credentials reach no client but their own', async () => {
    await using box = await openSandbox(choices);
    const other = at(box.seeded.otherClients, 0);
    const path = `/v1/clients/${other.clientId}`;
    const { otherClient: status } = choices;
    expectRefusal(await box.get(`${path}/accounts`), { status });
    expectRefusal(
      await box.call('GET', `${path}/credentials`, undefined, { 'x-api-key': box.seeded.apiKey }),
      { status },
    );
    const money = {
      client_id: other.clientId,
      source_instrument_id: other.centralizingInstrumentId,
      destination_instrument_id: at(other.cardInstrumentIds, 0),
      transaction_request: { external_reference: '1', description: '', amount: '1.00', currency: 'MXN' },
    };
    expectRefusal(await box.post('/v1/transactions/money_out', money), { status });
    const theirs = { authorization: `Bearer ${other.accessToken}` };
    expect((await box.call('GET', `${path}/accounts`, undefined, theirs)).status).toBe(200);
  });

  test('an instrument, transaction or webhook of another client is not found under one’s own path', async () => {
    await using box = await openSandbox(choices);
    const other = at(box.seeded.otherClients, 0);
    const ids = [
      `/instruments/${other.centralizingInstrumentId}`,
      `/transactions/${other.transactions.moneyOutId}`,
    ];
    for (const path of ids) expectRefusal(await box.get(box.of(path)), { status: 404 });
    const refund = box.of(`/transactions/${other.transactions.refundableCreditId}/refund`);
    expectRefusal(await box.post(refund, { refundReason: 'x' }), { status: 404 });
  });
});

test('a token ends after its lifetime, which is a choice', async () => {
  await using box = await openSandbox({ tokenTtlSeconds: 1 });
  const { exp } = decodeJwt(box.seeded.accessToken);
  expect(exp).toBeDefined();
  await expect.poll(async () => (await box.get('/v1/banks')).status, { interval: 50 }).toBe(401);
  const again = (await box.call('GET', '/sandbox')).text;
  expect(again).not.toContain(box.seeded.accessToken);
});

test('a token without exp that has ended stays so, also once another has been issued', async () => {
  await using box = await openSandbox({
    tokenTtlSeconds: 1,
    tokenClaims: { client: 'client_id', subject: 'client', expires: false },
  });
  const read = async () => (await box.get('/v1/banks')).status;
  await expect.poll(read, { interval: 50 }).toBe(401);
  const { apiKey, clientId: client_id, clientSecret: client_secret } = box.seeded;
  const body = { client_id, client_secret };
  const issued = await box.call('POST', box.of('/auth/credential-tokens'), body, { 'x-api-key': apiKey });
  expect(issued.status).toBe(200);
  expect(await read()).toBe(401);
});

test('under the alternative, a new token ends the older ones and carries no exp', async () => {
  await using box = await openSandbox({
    newTokenEndsOlder: true,
    tokenClaims: { client: 'cid', subject: 'credential', expires: false },
  });
  const { apiKey, clientId: client_id, clientSecret: client_secret } = box.seeded;
  expect(decodeJwt(box.seeded.accessToken).exp).toBeUndefined();
  await box.call(
    'POST',
    box.of('/auth/credential-tokens'),
    { client_id, client_secret },
    { 'x-api-key': apiKey },
  );
  expect((await box.get('/v1/banks')).status).toBe(401);
});

test('the token is a JWT of HS256 whose signature verifies under no other key', async () => {
  await using box = await openSandbox();
  expect(decodeProtectedHeader(box.seeded.accessToken)).toMatchObject({ alg: 'HS256', typ: 'JWT' });
  await expect(jwtVerify(box.seeded.accessToken, new Uint8Array(32))).rejects.toThrow(
    /signature verification failed/,
  );
});
