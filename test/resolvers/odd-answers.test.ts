import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { type AlteredService, altered, startAltered } from '../helpers/altered-service.ts';
import { steppedClock } from '../helpers/clock.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

let sandbox: Sandbox;
let service: AlteredService;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  service = await startAltered(sandbox.url);
  world = await control(sandbox, 'GET', '/sandbox');
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await sandbox.stop();
});

it('the end of the log that cannot be read takes nothing away from what stands beside it', async () => {
  await using redis = await startRedis();
  await using cut = await startGateway({
    sandbox,
    webhooks: false,
    config: { redisUrl: new Secret(redis.url) },
  });
  await redis.kill();
  service.alter = () => undefined;
  for (let time = 0; time < 3; time += 1) {
    const { data, errors } = await cut.query('{ eventCursor client { accounts { totalCount } } }');
    expect(data).toEqual({ eventCursor: null, client: { accounts: { totalCount: expect.any(Number) } } });
    expect(errors).toMatchObject([{ path: ['eventCursor'], extensions: { code: 'STORE_UNAVAILABLE' } }]);
  }
});

it('an instrument that does not say whose it is spoils its own row for a narrowed caller, and is not shown', async () => {
  const [customer = ''] = world.customerIds;
  await using narrowed = await startGateway({
    sandbox,
    webhooks: false,
    config: { ...PATIENT, upstreamUrl: service.url, service: serviceFor(sandbox), listsMaxAgeMs: 0 },
  });
  const headers = { authorization: `Bearer ${await callerToken({ customer_id: customer })}` };
  const ask = () =>
    narrowed.query('{ client { instruments(first: 100) { totalCount nodes { id alias } } } }', {}, headers);
  service.alter = () => undefined;
  const whole = (await ask()).data.client.instruments;
  expect(whole.nodes.length).toBeGreaterThan(1);
  for (const oddity of ['dropped', null, {}] as const) {
    service.alter = ({ path }, { body }) =>
      /\/instruments(\?|$)/.test(path)
        ? { body: altered(altered(body, ['data', 0, 'ownerId'], oddity), ['data', 0, 'customerId'], oddity) }
        : undefined;
    const { data, errors } = await ask();
    expect(data.client.instruments).toEqual({ ...whole, nodes: whole.nodes.with(0, null) });
    expect(errors).toMatchObject([
      { path: ['client', 'instruments', 'nodes', 0], extensions: { code: 'UPSTREAM_INVALID' } },
    ]);
  }
  // One that says that it is another's never comes from this list: nothing of it is believed.
  service.alter = ({ path }, { body }) =>
    /\/instruments(\?|$)/.test(path) ? { body: altered(body, ['data', 0, 'ownerId'], 'odd') } : undefined;
  const { data, errors } = await ask();
  expect(data.client.instruments).toBeNull();
  expect(errors).toMatchObject([{ extensions: { code: 'UPSTREAM_INVALID' } }]);
});

it('a CLABE and an account number that come as long numbers are not shown as others', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { ...PATIENT, upstreamUrl: service.url },
  });
  service.alter = () => undefined;
  const list = await gateway.query(
    '{ client { instruments(first: 100) { nodes { id detail { __typename } } } } }',
  );
  const [{ id }] = list.data.client.instruments.nodes.filter(
    ({ detail }: { detail: { __typename: string } }) => detail.__typename === 'ClabeDetail',
  );
  const read =
    'query ($id: ID!) { instrument(id: $id) { detail { ... on ClabeDetail { clabe accountNumber holderName } } } }';
  const ask = async (detail: object) => {
    service.alter = ({ path }, { body }) =>
      /\/instruments\/[^/?]+(\?|$)/.test(path)
        ? { body: altered(body, ['instrumentDetail'], { holderName: 'Ana', ...detail }) }
        : undefined;
    const { data, errors = [] } = await gateway.query(read, { id });
    return [data.instrument.detail, errors.map(({ extensions }) => extensions)];
  };
  const long = Number('646180110400000007');
  const invalid = expect.objectContaining({ code: 'UPSTREAM_INVALID' });
  expect(await ask({ clabeNumber: long })).toEqual([null, [invalid]]);
  expect(await ask({ clabeNumber: '646180110400000007', accountNumber: long })).toEqual([
    { clabe: '646180110400000007', accountNumber: null, holderName: 'Ana' },
    [invalid],
  ]);
});

it('an account without a CLABE is not shown the credits to others', async () => {
  await using gateway = await startGateway({ sandbox, config: { ...PATIENT, upstreamUrl: service.url } });
  service.alter = () => undefined;
  const read =
    '{ client { accounts(first: 2) { nodes { moneyIn { nodes { ... on MoneyInEvent { beneficiary { account } } } } } } } }';
  const [{ clabe }] = world.accounts;
  const whole = { moneyIn: { nodes: [{ beneficiary: { account: clabe } }] } };
  await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '1.00' });
  await until(async () => {
    const { nodes } = (await gateway.query(read)).data.client.accounts;
    return nodes[0].moneyIn.nodes.length === 1;
  });
  for (const oddity of ['dropped', null, '', 'None'] as const) {
    service.alter = ({ path }, { body }) =>
      /\/accounts(\?|$)/.test(path) ? { body: altered(body, ['data', 1, 'clabeNumber'], oddity) } : undefined;
    const { data, errors } = await gateway.query(read);
    expect(data.client.accounts.nodes).toEqual([whole, { moneyIn: null }]);
    expect(errors).toMatchObject([
      { path: ['client', 'accounts', 'nodes', 1, 'moneyIn'], extensions: { code: 'UPSTREAM_INVALID' } },
    ]);
  }
});

it('a transaction and an instrument that answer with another id are not shown under the one asked for', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { ...PATIENT, upstreamUrl: service.url },
  });
  service.alter = () => undefined;
  const list = await gateway.query('{ client { instruments(first: 2) { nodes { id } } } }');
  const [asked, other] = list.data.client.instruments.nodes.map(({ id }: { id: string }) => id);
  const read = 'query ($id: ID!) { instrument(id: $id) { id } transaction(id: $id) { id status } }';
  const transaction = { id: other, currency: 'MXN', amount: '1.00', transactionStatus: 'SETTLED' };
  service.alter = ({ path }) =>
    /\/(instruments|transactions)\/[^/?]+(\?|$)/.test(path)
      ? { status: 200, body: { ...transaction, instrumentStatus: 'ACTIVE', id: other } }
      : undefined;
  const { data, errors } = await gateway.query(read, { id: asked });
  expect(data).toEqual({ instrument: null, transaction: null });
  expect(errors).toMatchObject([
    {
      path: ['instrument'],
      message: expect.stringContaining('another id'),
      extensions: { code: 'UPSTREAM_INVALID' },
    },
    {
      path: ['transaction'],
      message: expect.stringContaining('another id'),
      extensions: { code: 'UPSTREAM_INVALID' },
    },
  ]);
});

it.each(TRANSPORTS)(
  'a reading that tells no status is no change to who follows a transaction over %s',
  async (_transport, subscribe) => {
    await using followed = await startGateway({
      sandbox,
      webhooks: ['STATUS_UPDATE'],
      config: { ...PATIENT, upstreamUrl: service.url },
      // It stands still: nothing is read but what a message hints at.
      clock: steppedClock(),
    });
    service.alter = () => undefined;
    const paid = await control(sandbox, 'POST', '/v1/transactions/money_out', {
      client_id: world.clientId,
      source_instrument_id: world.centralizingInstrumentId,
      destination_instrument_id: world.cardInstrumentIds[0],
      transaction_request: { external_reference: '1', description: 'x', amount: '1.00', currency: 'MXN' },
    });
    await using subscriber = subscribe(followed.graphql, sandbox.accessToken, {
      query: `subscription { transactionStatus(transactionId: "${paid.id}") { transaction { rawStatus } } }`,
    });
    await subscriber.received(1);
    const hint = () =>
      fetch(followed.ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
        method: 'POST',
        headers: { authorization: `Bearer ${followed.ingress.token(sandbox.clientId, 'STATUS_UPDATE')}` },
        body: JSON.stringify({ id: paid.id, at: crypto.randomUUID() }),
      });
    const failures = () =>
      followed.log.filter((line) => line.includes('is followed could not be read')).length;
    for (const [time, oddity] of ([7, {}] as const).entries()) {
      service.alter = ({ path }, { body }) =>
        path.includes(paid.id) ? { body: altered(body, ['transactionStatus'], oddity) } : undefined;
      await hint();
      await until(() => failures() > time);
    }
    service.alter = ({ path }, { body }) =>
      path.includes(paid.id) ? { body: altered(body, ['transactionStatus'], 'odd') } : undefined;
    await hint();
    await subscriber.received(2);
    expect(subscriber.results.map(({ data }) => data.transactionStatus.transaction.rawStatus)).toEqual([
      expect.stringMatching(/^INIT|^LIQ/),
      'odd',
    ]);
  },
);
