import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../helpers/gateway.ts';
import { json } from '../helpers/http-stub.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { documentOf, inject, payable } from './faults/payments.ts';

const ACCOUNTS = '{ client { accounts { totalCount } } }';
const INSTRUMENT = 'query ($id: ID!) { instrument(id: $id) { id } }';
const INSTRUMENT_ROUTE = 'GET /v1/clients/{clientId}/instruments/{instrumentId}';
/** What one caller may have under way (UPSTREAM_CALLS_PER_CALLER). */
const UNDER_WAY = 16;
/** So many operations of two calls each are one less than a caller may have under way. */
const OPERATIONS = UNDER_WAY - 1;
const WAITING = 2 * OPERATIONS - UNDER_WAY;

const bearer = async (claims: { sub: string; customer_id?: string }) => ({
  authorization: `Bearer ${await callerToken(claims)}`,
});

describe('callers of service mode, who are one to the REST service', () => {
  let sandbox: Sandbox;
  let gateway: RunningGateway;
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: {
        service: serviceFor(sandbox),
        // What hangs does so for as long as a slow machine takes for the rest.
        upstreamTimeoutMs: 60_000,
        operationTimeoutMs: 60_000,
        listsMaxAgeMs: 0,
      },
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

  const arrived = async (route: string): Promise<number> =>
    (await control(sandbox, 'GET', '/sandbox/requests')).counts[route] ?? 0;

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
  };

  /** One who has all of its calls under way, none of them answered, and more of them waiting. */
  const busy = async (headers: Record<string, string>) => {
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, 'hang', UNDER_WAY);
    const left = new AbortController();
    const asked = Array.from({ length: OPERATIONS }, (_, index) =>
      sendQuery(
        gateway.graphql,
        'query ($a: ID!, $b: ID!) { a: instrument(id: $a) { id } b: instrument(id: $b) { id } }',
        { a: `a-${index}`, b: `b-${index}` },
        headers,
        left.signal,
      ).catch(() => undefined),
    );
    await until(async () => (await metric('pasarela_upstream_calls_waiting')) === WAITING);
    // The fault is for these, and for nothing that comes after them.
    await until(async () => (await arrived(INSTRUMENT_ROUTE)) === UNDER_WAY);
    return {
      leave: async () => {
        left.abort();
        await Promise.all(asked);
        // Those who have left wait for nothing, and keep no place.
        await until(async () => (await metric('pasarela_upstream_calls_waiting')) === 0);
      },
    };
  };

  it('pay while all of their own calls, and of others, hang: what a payment reads first waits for none', async () => {
    const { customerIds, instruments } = await control(sandbox, 'GET', '/sandbox');
    const [customer] = customerIds;
    const own = (roles: readonly string[]) =>
      instruments.find(
        ({ role, ownerId, status }: Record<'role' | 'ownerId' | 'status', string>) =>
          roles.includes(role) && ownerId === customer && status === 'ACTIVE',
      )?.id;
    const headers = await bearer({ sub: 'one with much to read', customer_id: customer });
    const { leave } = await busy(headers);
    for (const number of [1, 2]) {
      const input = {
        idempotencyKey: `the key ${number} of a busy customer`,
        sourceInstrumentId: own(['internal']),
        destinationInstrumentId: own(['card', 'clabe']),
        amount: '1.00',
        description: `busy ${number}`,
        externalReference: '1',
      };
      const { data, errors } = await gateway.query(documentOf('createMoneyOut'), { input }, headers);
      expect(errors).toBeUndefined();
      expect(data.result).toMatchObject({ replayed: false });
    }
    const refund = await payable(sandbox, 'refundTransaction', 'busy refund');
    const { data } = await gateway.query(
      documentOf('refundTransaction'),
      { input: refund.input },
      await bearer({ sub: 'one with much to read' }),
    );
    expect(data.result).toMatchObject({ replayed: false });
    // None of the reads has gone on meanwhile.
    expect(await metric('pasarela_upstream_calls_waiting')).toBe(WAITING);
    await leave();
  });

  it('wait for what another has asked for where they would wait themselves', async () => {
    const slow = await bearer({ sub: 'one with much to read' });
    const quick = await bearer({ sub: 'one with little' });
    // Both are known.
    for (const headers of [slow, quick]) await gateway.query('{ client { id } }', {}, headers);
    for (let round = 1; round <= 2; round += 1) {
      await control(sandbox, 'DELETE', '/sandbox/requests');
      const { leave } = await busy(slow);
      const left = new AbortController();
      const waiting = sendQuery(gateway.graphql, ACCOUNTS, {}, slow, left.signal).catch(() => undefined);
      await until(async () => (await metric('pasarela_upstream_calls_waiting')) > WAITING);
      const { data, errors } = await gateway.query(ACCOUNTS, {}, quick);
      expect(errors).toBeUndefined();
      expect(data.client.accounts.totalCount).toBeGreaterThan(0);
      // It was read for both.
      expect(await waiting).toMatchObject({ data: { client: data.client } });
      expect(await arrived('GET /v1/clients/{clientId}/accounts')).toBe(1);
      await leave();
      await control(sandbox, 'DELETE', '/sandbox/faults');
    }
  });

  it('end no read of another who waits for the same when they leave, and end it when both do', async () => {
    const route = 'GET /v1/clients/{clientId}/webhooks';
    const [first, second] = [await bearer({ sub: 'first' }), await bearer({ sub: 'second' })];
    for (const headers of [first, second]) await gateway.query('{ client { id } }', {}, headers);
    for (let round = 1; round <= 2; round += 1) {
      await control(sandbox, 'DELETE', '/sandbox/requests');
      await inject(sandbox, { method: 'GET', path: '/v1/clients/*/webhooks' }, { delayMs: 5_000 });
      const left = new AbortController();
      const query = '{ client { webhooks { totalCount } } }';
      const gone = sendQuery(gateway.graphql, query, {}, first, left.signal).catch(() => 'gone');
      await until(async () => (await arrived(route)) === 1);
      const stays = gateway.query(query, {}, second);
      left.abort();
      expect(await gone).toBe('gone');
      expect((await stays).errors).toBeUndefined();
      expect(await arrived(route)).toBe(1);
      await control(sandbox, 'DELETE', '/sandbox/faults');
    }
  });
});

describe('a reader whose operations have less time than the service is promised', () => {
  it('suspends no call of another, and no payment', async () => {
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    await using gateway = await startGateway({
      sandbox,
      webhooks: false,
      // Enough for the other caller's operations on a slow machine.
      config: { service: serviceFor(sandbox), upstreamTimeoutMs: 30_000, operationTimeoutMs: 12_000 },
    });
    const readers = await Promise.all(
      ['one', 'two', 'three', 'four'].map((name) => bearer({ sub: `reader ${name}` })),
    );
    const other = await bearer({ sub: 'another' });
    for (const headers of [other, ...readers]) {
      expect((await gateway.query('{ client { id } }', {}, headers)).errors).toBeUndefined();
    }
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, 'hang');
    for (let round = 1; round <= 2; round += 1) {
      const asked = readers.flatMap((headers) =>
        Array.from({ length: 10 }, (_, index) =>
          gateway.query(INSTRUMENT, { id: `hangs-${round}-${index}` }, headers),
        ),
      );
      for (const { errors } of await Promise.all(asked)) {
        expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_TIMEOUT');
      }
      const { data, errors } = await gateway.query(ACCOUNTS, {}, other);
      expect(errors).toBeUndefined();
      expect(data.client.accounts.totalCount).toBeGreaterThan(0);
      const { input } = await payable(sandbox, 'createInternalTransaction', `beside readers ${round}`);
      const paid = await gateway.query(documentOf('createInternalTransaction'), { input }, other);
      expect(paid.data.result).toMatchObject({ replayed: false });
    }
    expect(await (await fetch(`${gateway.url}/readyz`)).json()).toMatchObject({ status: 'ready' });
  });
});

describe('a client with forty tokens (passthrough)', () => {
  it('takes three quarters of the connections at most: another is served meanwhile, and its tokens take turns', async () => {
    const held: ServerResponse[] = [];
    const service = createServer((request, response) => {
      const [, clientId, id] =
        /^\/v1\/clients\/([^/]+)\/instruments(?:\/([^/?]+))?/.exec(request.url ?? '') ?? [];
      const item = {
        id: id ?? 'first',
        clientId,
        alias: 'a',
        type: 'RECEIVER',
        rfc: 'X',
        instrumentDetail: {},
      };
      if (id?.startsWith('held') === true) held.push(response);
      else if (id !== undefined) json(response, item);
      else json(response, { data: [item], totalItems: 1, currentPage: 1, perPage: 1 });
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    // A TCP server's address is of this form.
    const { port } = service.address() as AddressInfo;
    const gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: {
        upstreamUrl: `http://127.0.0.1:${port}`,
        upstreamTimeoutMs: 30_000,
        operationTimeoutMs: 60_000,
      },
    });
    const tokenOf = async (clientId: string, name: string) =>
      `Bearer ${await new SignJWT({ client_id: clientId, name })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(new TextEncoder().encode('nobody looks at it'))}`;
    const [many, single] = ['11111111-2222-4333-8444-000000000001', '11111111-2222-4333-8444-000000000002'];
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, index) => tokenOf(many ?? '', `token ${index}`)),
    );
    const other = await tokenOf(single ?? '', 'alone');
    const ask = (authorization: string, id: string, signal?: AbortSignal) =>
      sendQuery(gateway.graphql, INSTRUMENT, { id }, { authorization }, signal ?? null);
    for (const token of [...tokens, other]) expect((await ask(token, 'known')).errors).toBeUndefined();

    const left = new AbortController();
    const crowd = tokens.flatMap((token, at) =>
      Array.from({ length: 8 }, (_, index) =>
        ask(token, `held-${at}-${index}`, left.signal).catch(() => undefined),
      ),
    );
    await until(() => held.length >= 96);
    expect((await ask(other, 'own')).data.instrument.id).toBe('own');
    expect(held).toHaveLength(96);
    left.abort();
    await Promise.all(crowd);
    // Those who have left have given back their places.
    expect((await ask(tokens[0] ?? '', 'afterwards')).data.instrument.id).toBe('afterwards');
    await gateway.stop();
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
  });
});
