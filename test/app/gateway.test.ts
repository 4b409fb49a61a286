import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gzipSync } from 'node:zlib';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { control, type RunningGateway, sendQuery, startGateway } from '../helpers/gateway.ts';
import { VARIANTS } from '../helpers/variants.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const CLIENT = '{ client { id } }';

describe.each(VARIANTS)('on %s', (_variant, sandboxOptions) => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions });
  });
  afterAll(() => gateway.stop());

  const jwt = (claims: Record<string, unknown>): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode('somebody else'));

  describe('who is calling', () => {
    it('is told by the upstream’s own token', async () => {
      const { data, errors } = await gateway.query(CLIENT);
      expect(errors).toBeUndefined();
      expect(data.client.id).toBe(gateway.sandbox.clientId);
    });

    it.each([
      ['no token', undefined, 'An access token is needed'],
      ['another scheme', 'Basic dXNlcjpwYXNz', 'must have the form: Bearer'],
      [
        'a token that is no JWT',
        'Bearer nonsense',
        'it is no JWT that has a UUID in one of its claims client_id',
      ],
    ])('is refused with %s', async (_, authorization, message) => {
      const { data, errors } = await gateway.query(CLIENT, {}, { authorization });
      expect(data ?? null).toBeNull();
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining(message),
        extensions: { code: 'UNAUTHENTICATED', requestId: expect.any(String) },
      });
    });

    it('is not believed from a token that the upstream did not issue', async () => {
      const token = await jwt({ client_id: gateway.sandbox.clientId });
      const { errors } = await gateway.query(CLIENT, {}, { authorization: `Bearer ${token}` });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
    });

    it('is nobody when the token names a client that nobody knows', async () => {
      const token = await jwt({ client_id: UNKNOWN, sub: 'not-a-uuid' });
      const { errors } = await gateway.query(CLIENT, {}, { authorization: `Bearer ${token}` });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
    });

    it('is not asked of the upstream twice within a minute', async () => {
      await gateway.query(CLIENT);
      await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
      await gateway.query(CLIENT);
      const { total } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
      expect(total).toBe(0);
    });
  });

  describe('what is asked for', () => {
    it.each(['../banks', '%2e%2e', 'a?b', 'a#b', ''])(
      'is BAD_USER_INPUT for the malformed id %j, and no call is made',
      async (id) => {
        await gateway.query(CLIENT);
        await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
        for (const field of ['instrument', 'transaction', 'customer', 'bank', 'webhook']) {
          const { errors } = await gateway.query(`query ($id: ID!) { ${field}(id: $id) { id } }`, { id });
          expect(errors?.[0]).toMatchObject({
            message: expect.stringContaining('id'),
            extensions: { code: 'BAD_USER_INPUT' },
          });
        }
        const { total } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
        expect(total).toBe(0);
      },
    );

    it('is null, without an error, for an id that is well-formed and unknown', async () => {
      const { data, errors } = await gateway.query(
        `query ($id: ID!) {
        instrument(id: $id) { id } transaction(id: $id) { id } customer(id: $id) { id } bank(id: $id) { id }
        webhook(id: $id) { id } account(by: { id: $id }) { id }
      }`,
        { id: UNKNOWN },
      );
      expect(errors).toBeUndefined();
      expect(Object.values(data)).toEqual([null, null, null, null, null, null]);
    });

    it.each([0, -1, 101, 10_000])('is BAD_USER_INPUT for a page of %i', async (first) => {
      const { errors } = await gateway.query(
        'query ($first: Int) { client { instruments(first: $first) { totalCount } } }',
        { first },
      );
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('100'),
        path: ['client', 'instruments'],
        extensions: { code: 'BAD_USER_INPUT' },
      });
    });

    it.each([
      ['', 'BAD_USER_INPUT'],
      ['nonsense', 'CURSOR_INVALID'],
      ['bzotMQ', 'CURSOR_INVALID'],
      ['💥', 'CURSOR_INVALID'],
    ])('refuses the cursor %j as %s', async (after, code) => {
      const { errors } = await gateway.query(
        'query ($after: Cursor) { client { instruments(after: $after) { totalCount } } }',
        { after },
      );
      expect(errors?.[0]?.extensions).toMatchObject({ code });
    });

    it('says which variable is wrong, and how', async () => {
      const { errors } = await gateway.query(
        'query ($first: Int!) { client { instruments(first: $first) { totalCount } } }',
        {
          first: 'many',
        },
      );
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('$first'),
        extensions: { code: 'BAD_USER_INPUT' },
      });
    });
  });

  describe('an upstream that fails', () => {
    it('is UPSTREAM_UNAVAILABLE when it cannot be reached, and the gateway starts all the same', async () => {
      const closed = createServer();
      await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
      const { port } = closed.address() as AddressInfo;
      await new Promise((resolve) => closed.close(resolve));
      await using lonely = await startGateway({
        sandbox: gateway.sandbox,
        webhooks: false,
        config: { upstreamUrl: `http://127.0.0.1:${port}` },
      });
      const { errors } = await lonely.query(CLIENT);
      expect(errors?.[0]).toMatchObject({
        message: 'The service cannot be reached.',
        extensions: { code: 'UPSTREAM_UNAVAILABLE' },
      });
      expect((await fetch(`${lonely.url}/readyz`)).status).toBe(200);
    });

    it('leaves the parent in place when a relation cannot be read', async () => {
      await gateway.query(CLIENT);
      await control(gateway.sandbox, 'POST', '/sandbox/faults', {
        match: { path: '/v1/clients/*/accounts' },
        fault: { status: 500, body: { secret: 'stack trace' } },
      });
      const { data, errors } = await gateway.query(
        '{ client { instruments(first: 3) { nodes { alias account { clabe } } } } }',
      );
      await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
      expect(data.client.instruments.nodes).toHaveLength(3);
      expect(data.client.instruments.nodes[0]).toMatchObject({ alias: expect.any(String), account: null });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
      expect(JSON.stringify(errors)).not.toContain('stack trace');
    });
  });

  describe('the graph of instruments', () => {
    /** How many pages the four lists have at this sandbox: the instruments as far as the first 25, the others whole. */
    async function everyPage(): Promise<{ totalCount: number; pages: number }> {
      const { clientId } = gateway.sandbox;
      const read = (path: string) => control(gateway.sandbox, 'GET', path);
      const instruments = await read(`/v1/clients/${clientId}/instruments?page=1&per_page=25`);
      const customers = await read(`/v1/clients/${clientId}/customers`);
      const accounts = await read(`/v1/clients/${clientId}/accounts`);
      const banks = await read('/v1/banks');
      const pages = [
        25 / instruments.perPage,
        customers.totalItems / customers.perPage,
        accounts.totalItem / accounts.perPage,
        banks.total_banks / banks.page_size,
      ];
      return {
        totalCount: instruments.totalItems,
        pages: pages.reduce((sum, count) => sum + Math.ceil(count), 0),
      };
    }

    const JOIN = `query ($first: Int!, $after: Cursor) {
    client { instruments(first: $first, after: $after) {
      totalCount
      pageInfo { hasNextPage hasPreviousPage endCursor }
      nodes { id bank { id } owner { __typename ... on Client { id } ... on Customer { id name } } customer { id } account { id } }
    } }
  }`;

    it('takes at most four REST calls for 25 instruments with bank, owner, customer and account, and one per further page, once the lists are known', async () => {
      const { totalCount, pages } = await everyPage();
      expect(totalCount).toBeGreaterThan(25);
      await using fresh = await startGateway({ sandbox: gateway.sandbox, webhooks: false });
      await fresh.query(JOIN, { first: 25 });
      await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
      const { data, errors } = await fresh.query(JOIN, { first: 25 });
      expect(errors).toBeUndefined();
      expect(data.client.instruments.nodes).toHaveLength(25);
      const { counts, total } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
      expect(Object.keys(counts).length).toBeLessThanOrEqual(4);
      expect(total).toBeLessThanOrEqual(pages);
    });

    it.each([1, 3, 7, 10, 25, 100])(
      'pages through all instruments once, in order, %i at a time',
      async (first) => {
        const whole = await gateway.query(JOIN, { first: 100 });
        const all = whole.data.client.instruments.nodes.map(({ id }: { id: string }) => id);
        const seen: string[] = [];
        for (let after: string | null = null; ; ) {
          const { data, errors } = await gateway.query(JOIN, { first, after });
          expect(errors).toBeUndefined();
          const { nodes, pageInfo, totalCount } = data.client.instruments;
          expect(totalCount).toBe(all.length);
          expect(pageInfo.hasPreviousPage).toBe(after !== null);
          seen.push(...nodes.map(({ id }: { id: string }) => id));
          if (!pageInfo.hasNextPage) break;
          after = pageInfo.endCursor;
        }
        expect(seen).toEqual(all);
        expect(new Set(seen).size).toBe(all.length);
      },
    );
  });

  describe('the HTTP server', () => {
    it('refuses a POST that a form could send', async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
      ]) {
        const response = await fetch(gateway.graphql, {
          method: 'POST',
          headers: { 'content-type': type },
          body: '{"query":"{ __typename }"}',
        });
        expect(response.status).toBe(415);
      }
    });

    it('says of a compressed body that it is not to be compressed', async () => {
      const response = await fetch(gateway.graphql, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: gzipSync('{"query":"{ __typename }"}'),
      });
      expect(response.status).toBe(415);
      expect(await response.text()).toContain('is not compressed; this one has Content-Encoding: gzip.');
    });

    it('refuses a GET that another site’s page sends', async () => {
      const response = await fetch(`${gateway.graphql}?query={__typename}`, {
        headers: { 'sec-fetch-site': 'cross-site', accept: 'application/json' },
      });
      expect(response.status).toBe(403);
    });

    it('names the path of the graph where nothing is served', async () => {
      const response = await fetch(`${gateway.url}/nowhere`);
      expect(response.status).toBe(404);
      expect(await response.text()).toContain('/graphql');
    });

    it('says that it is alive and ready, and counts what it does', async () => {
      expect(await (await fetch(`${gateway.url}/healthz`)).json()).toEqual({ status: 'alive' });
      expect(await (await fetch(`${gateway.url}/readyz`)).json()).toMatchObject({ status: 'ready' });
      const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
      expect(metrics).toContain('pasarela_operations_total{type="query",outcome="ok"}');
      expect(metrics).not.toContain(gateway.sandbox.clientId);
    });

    it('returns the request’s own id where it brings one', async () => {
      const { headers, errors } = await sendQuery(
        gateway.graphql,
        CLIENT,
        {},
        { 'x-request-id': 'my-request-1' },
      );
      expect(headers.get('x-request-id')).toBe('my-request-1');
      expect(errors?.[0]?.extensions).toMatchObject({ requestId: 'my-request-1' });
    });

    it('shows no page of another origin what it answers', async () => {
      const response = await fetch(gateway.graphql, {
        method: 'OPTIONS',
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    });
  });
});

it('says of a record of payments that cannot be written that it is degraded, and of nothing else', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
  await using gateway = await startGateway({ config: { dataDir } });
  // What was found of the stores answers for a second.
  const says = (state: object) =>
    expect
      .poll(async () => (await fetch(`${gateway.url}/readyz`)).json())
      .toMatchObject({ ...state, spooled: 0 });
  await says({ status: 'ready', degraded: [] });
  const other = new DatabaseSync(join(dataDir, 'money.sqlite'));
  other.exec('BEGIN IMMEDIATE');
  await says({ status: 'degraded', degraded: ['payments'] });
  other.exec('ROLLBACK');
  other.close();
  await says({ status: 'ready', degraded: [] });
  await rm(dataDir, { recursive: true, force: true });
});
