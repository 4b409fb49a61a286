import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { holdTime } from '../../helpers/held-time.ts';
import { newToken } from '../../helpers/new-token.ts';
import { TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../faults/payments.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  // Hundreds of questions at once may take a slow machine seconds, and all are to be answered.
  gateway = await startGateway({
    webhooks: false,
    config: { upstreamTimeoutMs: 60_000, operationTimeoutMs: 60_000 },
  });
});
afterAll(() => gateway.stop());
beforeEach(() => control(gateway.sandbox, 'DELETE', '/sandbox/requests'));

const PROBE = 'GET /v1/clients/{clientId}/instruments';
const CREDENTIALS = 'GET /v1/clients/{clientId}/credentials';
const requests = async (route: string, { sandbox } = gateway): Promise<number> =>
  (await control(sandbox, 'GET', '/sandbox/requests')).counts[route] ?? 0;

/** A token that the REST service refuses, which names so many clients. */
const madeUp = (index: number, clients = 1): string => {
  const id = (claim: number) => `11111111-2222-4333-8444-${String(index * 10 + claim).padStart(12, '0')}`;
  const claims = Object.fromEntries(
    ['client_id', 'clientId', 'cid', 'sub'].slice(0, clients).map((name, claim) => [name, id(claim)]),
  );
  return `Bearer e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
};

const codeOf = async (authorization: string, address: string | undefined): Promise<unknown> => {
  const { errors } = await gateway.query(
    '{ client { id } }',
    {},
    { authorization, 'x-forwarded-for': address },
  );
  return errors?.[0]?.extensions['code'];
};

describe('a token that the REST service refuses', () => {
  it('is asked about once, however often it comes', async () => {
    // A refusal is remembered for ten seconds.
    holdTime();
    const token = madeUp(1, 4);
    for (let round = 0; round < 10; round += 1)
      expect(await codeOf(token, '192.0.2.1')).toBe('UNAUTHENTICATED');
    const burst = await Promise.all(Array.from({ length: 40 }, () => codeOf(token, '192.0.2.1')));
    expect(new Set(burst)).toEqual(new Set(['UNAUTHENTICATED']));
    expect(await requests(PROBE)).toBe(4);
  });

  it.each(TRANSPORTS)(
    'is asked about once by streams and by queries, over %s',
    async (transport, subscribe) => {
      // As above.
      holdTime();
      const token = madeUp(transport === 'SSE' ? 10 : 20, 4);
      const query = 'subscription { events { id } }';
      const stream = async () => {
        await using subscriber = subscribe(gateway.graphql, token.slice('Bearer '.length), { query });
        // A socket is closed; over SSE the error is the one result of the stream.
        const code = Object(await subscriber.ended)['code'];
        return code ?? subscriber.results[0]?.errors?.[0]?.extensions?.['code'];
      };
      const refused = transport === 'SSE' ? 'UNAUTHENTICATED' : 4403;
      for (let round = 0; round < 5; round += 1) expect(await stream()).toBe(refused);
      const burst = await Promise.all(Array.from({ length: 20 }, stream));
      expect(new Set(burst)).toEqual(new Set([refused]));
      expect(await codeOf(token, undefined)).toBe('UNAUTHENTICATED');
      expect(await requests(PROBE)).toBe(4);
    },
  );

  it('is one of a hundred that an address may try in a minute, at once or one by one', async () => {
    const codes = await Promise.all(
      Array.from({ length: 300 }, (_, index) => codeOf(madeUp(100 + index, 4), '192.0.2.2')),
    );
    expect(codes.filter((code) => code === 'UNAUTHENTICATED')).toHaveLength(100);
    expect(codes.filter((code) => code === 'UPSTREAM_RATE_LIMITED')).toHaveLength(200);
    expect(await requests(PROBE)).toBe(400);
    expect(await codeOf(madeUp(999), '192.0.2.2')).toBe('UPSTREAM_RATE_LIMITED');
    expect(await requests(PROBE)).toBe(400);
    expect(await codeOf(madeUp(999), '192.0.2.3')).toBe('UNAUTHENTICATED');
  });

  it('takes no place of a first log-in from its address, of a client that has callers', async () => {
    const { accessToken } = gateway.sandbox;
    expect(await codeOf(`Bearer ${accessToken}`, '192.0.2.9')).toBeUndefined();
    await Promise.all(Array.from({ length: 150 }, (_, index) => codeOf(madeUp(2_000 + index), '192.0.2.4')));
    expect(await codeOf(madeUp(3_000), '192.0.2.4')).toBe('UPSTREAM_RATE_LIMITED');
    const token = await newToken(gateway.sandbox);
    expect(await codeOf(`Bearer ${token}`, '192.0.2.4')).toBeUndefined();
    // Those who are known wait for nobody there.
    expect(await codeOf(`Bearer ${accessToken}`, '192.0.2.4')).toBeUndefined();
  });
});

it('questions about made-up tokens that hang leave connections to others of their address whose client has callers, and to other addresses', async () => {
  await using own = await startGateway({
    webhooks: false,
    config: { upstreamCallsPerCaller: 128, upstreamTimeoutMs: 60_000, operationTimeoutMs: 60_000 },
  });
  const { sandbox } = own;
  const left = new AbortController();
  const ask = (authorization: string, address: string, signal: AbortSignal | null = null) =>
    sendQuery(own.graphql, '{ client { id } }', {}, { authorization, 'x-forwarded-for': address }, signal);
  expect((await ask(`Bearer ${sandbox.accessToken}`, '192.0.2.9')).errors).toBeUndefined();
  await control(sandbox, 'DELETE', '/sandbox/requests');
  const made = Array.from({ length: 30 }, (_, index) => madeUp(5_000 + index, 4));
  for (const client of new Set(made.flatMap((token) => Object.values(decodeJwt(token.slice(7))))))
    await inject(sandbox, { method: 'GET', path: `/v1/clients/${client}/instruments` }, 'hang', 1);
  const crowd = made.map((token) => ask(token, '192.0.2.7', left.signal).catch(() => undefined));
  await until(async () => (await requests(PROBE, own)) === 96);
  for (const address of ['192.0.2.7', '192.0.2.8'])
    expect((await ask(`Bearer ${await newToken(sandbox)}`, address)).errors).toBeUndefined();
  // The others of the crowd have no connection yet.
  expect(await requests(PROBE, own)).toBe(98);
  left.abort();
  await Promise.all(crowd);
});

it('tokens that have ended long ago, of phones that wake behind one address, keep nobody out and cost no call', async () => {
  await using own = await startGateway({ webhooks: false });
  const { sandbox } = own;
  const ask = (authorization: string) =>
    own.query('{ client { id } }', {}, { authorization, 'x-forwarded-for': '192.0.2.6' });
  const exp = Math.floor(Date.now() / 1_000) - 3_600;
  const ended = Array.from({ length: 150 }, (_, phone) => {
    const claims = { client_id: sandbox.clientId, exp, phone };
    return `Bearer e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
  });
  const codes = (await Promise.all(ended.map(ask))).map(({ errors }) => errors?.[0]?.extensions['code']);
  expect(new Set(codes)).toEqual(new Set(['UNAUTHENTICATED']));
  expect(await requests(PROBE, own)).toBe(0);
  expect((await ask(`Bearer ${sandbox.accessToken}`)).data).toEqual({ client: { id: sandbox.clientId } });
});

describe('a token that the REST service has accepted, and refuses since', () => {
  it.each(TRANSPORTS)(
    'is asked about once, however often it comes, over HTTP and over %s',
    async (transport, subscribe) => {
      await using own = await startGateway({
        webhooks: false,
        sandboxOptions: { choices: { tokenTtlSeconds: 15 } },
      });
      // A gateway may take longer to start than the token of the sandbox's own start lives.
      const accessToken = await newToken(own.sandbox);
      const endsAt = 1_000 * (decodeJwt(accessToken).exp ?? Number.NaN);
      const authorization = `Bearer ${accessToken}`;
      const codeOf = async () =>
        (await own.query('{ client { id } }', {}, { authorization })).errors?.[0]?.extensions['code'];
      expect(await codeOf()).toBeUndefined();
      const once = await requests(PROBE, own);
      await until(() => Date.now() > endsAt);
      // A refusal is remembered for ten seconds.
      holdTime();
      await control(own.sandbox, 'DELETE', '/sandbox/requests');
      for (let round = 0; round < 5; round += 1) expect(await codeOf()).toBe('UNAUTHENTICATED');
      const query = 'subscription { events { id } }';
      for (let round = 0; round < 5; round += 1) {
        await using subscriber = subscribe(own.graphql, accessToken, { query });
        const code = Object(await subscriber.ended)['code'];
        expect(code ?? subscriber.results[0]?.errors?.[0]?.extensions?.['code']).toBe(
          transport === 'SSE' ? 'UNAUTHENTICATED' : 4403,
        );
      }
      expect(await requests(PROBE, own)).toBe(once);
    },
  );
});

const UNKNOWN_CLIENT = '11111111-2222-4333-8444-555555555555';
const SECRET = '"11111111-2222-4333-8444-666666666666"';
const WITH_API_KEY = [
  ['query', `{ credentials(clientId: "${UNKNOWN_CLIENT}") { id } }`, CREDENTIALS],
  [
    'mutation',
    `mutation { issueCredentialToken(input: { clientId: "${UNKNOWN_CLIENT}", clientSecret: ${SECRET} }) { __typename } }`,
    'POST /v1/clients/{clientId}/auth/credential-tokens',
  ],
] as const;
const FROM = [
  ['an address that a proxy tells', '192.0.2.70'],
  ['behind a proxy that tells none', undefined],
  ['behind a proxy that tells what is none', 'unknown'],
] as const;

describe('API keys of one burst', () => {
  it.each(
    WITH_API_KEY.flatMap((way) => FROM.map((from) => [way[0], from[0], from[1], way[1], way[2]] as const)),
  )(
    'in a %s from %s are tried no more often than ten in a minute',
    async (_way, _from, address, document, route) => {
      await using own = await startGateway({ webhooks: false, sandbox: gateway.sandbox });
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          own.query(
            document,
            {},
            {
              authorization: undefined,
              'x-api-key': `wrong ${index}`,
              'x-forwarded-for': address,
            },
          ),
        ),
      );
      expect(await requests(route)).toBe(10);
      const codes = answers.map(({ errors }) => errors?.[0]?.extensions['code']);
      expect(codes.filter((code) => code === 'UPSTREAM_RATE_LIMITED')).toHaveLength(50);
    },
  );

  it('that are right are all served', async () => {
    const { clientId, apiKey } = gateway.sandbox;
    const answers = await Promise.all(
      Array.from({ length: 40 }, () =>
        gateway.query(
          `{ credentials(clientId: "${clientId}") { id } }`,
          {},
          {
            authorization: undefined,
            'x-api-key': apiKey,
            'x-forwarded-for': '192.0.2.80',
          },
        ),
      ),
    );
    expect(answers.filter(({ errors }) => errors !== undefined)).toEqual([]);
  });
});
