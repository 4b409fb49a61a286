import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../helpers/gateway.ts';
import { type CallerClaims, callerToken, serviceForAll } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { inject } from '../scenarios/faults/payments.ts';

const CLIENT = '{ client { id accounts { nodes { id } } } eventCursor }';
/** What one caller, and what one client, may have under way of the connections for reads. */
const OF_CALLER = 16;
const OF_CLIENT = 96;
const CONNECTIONS = 128;

interface Client {
  readonly clientId: string;
  readonly apiKey: string;
  readonly clientSecret: string;
  readonly accountIds: readonly string[];
}

let sandbox: Sandbox;
let gateway: RunningGateway;
let first: Client;
let second: Client;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const { otherClients, ...demo } = await control(sandbox, 'GET', '/sandbox');
  [first, second] = [demo, otherClients[0]];
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceForAll(first, second), operationTimeoutMs: 20_000, upstreamTimeoutMs: 20_000 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});
beforeEach(async () => {
  await control(sandbox, 'DELETE', '/sandbox/faults');
  await control(sandbox, 'DELETE', '/sandbox/requests');
});

const bearer = async (claims: CallerClaims) => ({ authorization: `Bearer ${await callerToken(claims)}` });
const ask = async (claims: CallerClaims, on = gateway) => on.query(CLIENT, {}, await bearer(claims));
const accountsOf = ({ data }: Awaited<ReturnType<typeof ask>>): readonly string[] =>
  data.client.accounts.nodes.map(({ id }: { id: string }) => id);

it('each token acts for the client that it names, with that one’s credentials, lists and events', async () => {
  for (let round = 1; round <= 2; round += 1) {
    // The same subject at both: it is somebody else.
    const [one, other] = await Promise.all([
      ask({ sub: 'somebody', merchant: first.clientId }),
      ask({ sub: 'somebody', merchant: second.clientId.toUpperCase() }),
    ]);
    expect([one.data.client.id, other.data.client.id]).toEqual([first.clientId, second.clientId]);
    expect(new Set(accountsOf(one))).toEqual(new Set(first.accountIds));
    expect(new Set(accountsOf(other))).toEqual(new Set(second.accountIds));
    const swapped = await gateway.query(
      'query ($after: Cursor) { events(after: $after) { nodes { id } } }',
      { after: one.data.eventCursor },
      await bearer({ sub: 'somebody', merchant: second.clientId }),
    );
    expect(swapped.errors?.[0]?.extensions).toMatchObject({ code: 'CURSOR_INVALID' });
  }
});

it.each<[string, CallerClaims]>([
  ['no client', {}],
  ['a client that the gateway does not stand for', { merchant: '00000000-0000-4000-8000-000000000000' }],
  ['a number', { merchant: 7 }],
  ['two clients', { merchant: [1, 2] }],
])('a token that names %s is for nobody', async (_name, claims) => {
  const { errors } = await ask(claims);
  expect(errors?.[0]).toMatchObject({
    message: 'The access token is for no client of this gateway.',
    extensions: { code: 'UNAUTHENTICATED' },
  });
});

it('a client whose credentials are refused holds up nobody else', async () => {
  const wrong = { ...first, clientSecret: 'not the secret of this client' };
  await using both = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceForAll(wrong, second) },
  });
  for (let round = 1; round <= 25; round += 1) {
    const refused = await ask({ merchant: first.clientId }, both);
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  }
  const served = await ask({ merchant: second.clientId }, both);
  expect(served.errors).toBeUndefined();
  expect(new Set(accountsOf(served))).toEqual(new Set(second.accountIds));
});

it('a client with many callers takes no more than its share, and another is served beside it', async () => {
  const query = 'query ($a: ID!, $b: ID!) { a: instrument(id: $a) { id } b: instrument(id: $b) { id } }';
  await ask({ merchant: second.clientId });
  const route = 'GET /v1/clients/{clientId}/instruments/{instrumentId}';
  const arrived = async (): Promise<number> =>
    (await control(sandbox, 'GET', '/sandbox/requests')).counts[route] ?? 0;
  const many = await Promise.all(
    Array.from({ length: CONNECTIONS / OF_CALLER + 2 }, (_, index) =>
      bearer({ sub: `one of many ${index}`, merchant: first.clientId }),
    ),
  );
  for (let round = 1; round <= 2; round += 1) {
    await control(sandbox, 'DELETE', '/sandbox/requests');
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, 'hang', 2 * CONNECTIONS);
    const left = new AbortController();
    const asked = many.flatMap((headers, index) =>
      Array.from({ length: OF_CALLER / 2 }, (_, at) => {
        const ids = { a: `a-${index}-${at}`, b: `b-${index}-${at}` };
        return sendQuery(gateway.graphql, query, ids, headers, left.signal).catch(() => undefined);
      }),
    );
    await until(async () => (await arrived()) === OF_CLIENT);
    const beside = await ask({ merchant: second.clientId });
    expect(beside.errors).toBeUndefined();
    left.abort();
    await Promise.all(asked);
    await control(sandbox, 'DELETE', '/sandbox/faults');
  }
});
