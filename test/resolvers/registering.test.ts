import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { documentOf, KEYLESS_CHANGES, matchOf } from '../helpers/keyless-changes.ts';
import { VARIANTS } from '../helpers/variants.ts';

const UNKNOWN = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const ERRORS = '... on UserError { code message field upstream { httpStatus } }';
const UNCLEAR = '... on OutcomeUnknown { safeToRetry retryUntil }';

const CREATE_ACCOUNT = `mutation ($input: CreatePrivateAccountInput!) { result: createPrivateAccount(input: $input) { __typename ${ERRORS} ${UNCLEAR}
  ... on CreatePrivateAccountSuccess { account { id clabe ownerId availableBalance { amount } instrument { id account { id } } } } } }`;
const CREATE_CUSTOMER_ACCOUNT = `mutation ($input: CreateCustomerPrivateAccountInput!) { result: createCustomerPrivateAccount(input: $input) { __typename ${ERRORS} ${UNCLEAR}
  ... on CreateCustomerPrivateAccountSuccess { account { id ownerType owner { ... on Customer { id } } } } } }`;
const REGISTER = `mutation ($input: RegisterInstrumentInput!) { result: registerInstrument(input: $input) { __typename ${ERRORS} ${UNCLEAR}
  ... on RegisterInstrumentSuccess { instrument { id type rfc alias customerId detail { ... on CardDetail { lastFour maskedNumber } ... on ClabeDetail { clabe } } } } } }`;
const CREATE_WEBHOOK = `mutation ($input: CreateWebhookInput!) { result: createWebhook(input: $input) { __typename ${ERRORS} ${UNCLEAR}
  ... on CreateWebhookSuccess { token webhook { id url type status authType feedsGateway } } } }`;
const UPDATE_WEBHOOK = `mutation ($input: UpdateWebhookInput!) { result: updateWebhook(input: $input) { __typename ${ERRORS}
  ... on UpdateWebhookSuccess { id webhook { id url status } } } }`;
const DELETE_WEBHOOK = `mutation ($input: DeleteWebhookInput!) { result: deleteWebhook(input: $input) { __typename ${ERRORS} ... on DeleteWebhookSuccess { id } } }`;
const CREATE_LEGACY = `mutation ($input: CreateLegacyWebhookInput!) { result: createLegacyWebhook(input: $input) { __typename ${ERRORS}
  ... on CreateWebhookSuccess { token webhook { id url type } } } }`;
/** What the readers of new accounts, instruments and webhooks look for, with an empty id. */
const WITHOUT_ID = {
  ...{ id: '', accountId: 'a', ownerId: 'o', clientBankAdapterId: 'c', accountNumber: '1', clabeNumber: '2' },
  ...{ accountType: 'PRIVATE_ACCOUNT', accountStatus: 'ACTIVE', availableBalance: '0.00' },
  ...{ alias: 'a', type: 'RECEIVER', rfc: 'ND' },
  ...{ url: 'https://example.mx/h', webhookType: 'CEP', webhookStatus: 'ACTIVE' },
};
const ISSUE_TOKEN = `mutation ($input: IssueCredentialTokenInput!) { result: issueCredentialToken(input: $input) { __typename ${ERRORS}
  ... on CredentialToken { id token status clientId expiresAt createdAt deletedAt } } }`;

describe.each(VARIANTS)('over %s,', (_name, sandboxOptions) => {
  let gateway: RunningGateway;
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;

  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions, config: PATIENT });
    world = await control(gateway.sandbox, 'GET', '/sandbox');
  });
  afterAll(() => gateway.stop());
  beforeEach(() => control(gateway.sandbox, 'DELETE', '/sandbox/faults'));

  /** The changes that have succeeded. */
  const done = new Set<string | undefined>();
  async function change(document: string, input: object) {
    const { data, errors } = await gateway.query(document, { input });
    expect(errors).toBeUndefined();
    if (data.result.__typename.endsWith('Success')) done.add(/ result: (\w+)/.exec(document)?.[1]);
    return data.result;
  }
  const fault = (method: string, path: string, what: unknown) =>
    control(gateway.sandbox, 'POST', '/sandbox/faults', { match: { method, path }, fault: what, times: 1 });
  const webhooks = async (): Promise<{ id: string; url: string; token: string; webhookStatus: string }[]> => {
    const found: { id: string; url: string; token: string; webhookStatus: string }[] = [];
    for (let page = 1; ; page += 1) {
      const list = await control(
        gateway.sandbox,
        'GET',
        `/v1/clients/${world.clientId}/webhooks?page=${page}`,
      );
      found.push(...list.data);
      if (found.length >= list.totalItem) return found;
    }
  };

  describe('a private account', () => {
    it('is created, and its instrument leads back to it', async () => {
      const { account } = await change(CREATE_ACCOUNT, {
        bankId: world.bankIds[0],
        ownerId: world.clientId,
        clientBankAdapterId: world.clientBankAdapterId,
        accountId: UNKNOWN,
      });
      expect(account).toMatchObject({
        clabe: expect.stringMatching(/^\d{18}$/),
        ownerId: world.clientId,
        availableBalance: { amount: '0.00' },
        instrument: { account: { id: account.id } },
      });
    });

    it.each([
      ['client', 'CreatePrivateAccount', 'Client'],
      ['customer', 'CreateCustomerPrivateAccount', 'Customer'],
    ])(
      'of a %s is among the accounts that are read after it, in the midst of an operation',
      async (whose, name, owner) => {
        const made = `... on ${name}Success { account { owner { ... on ${owner} { accounts { totalCount } } } } }`;
        const [customerId] = world.customerIds;
        const input = {
          ...{ bankId: world.bankIds[0], clientBankAdapterId: world.clientBankAdapterId },
          ...(whose === 'client'
            ? { ownerId: world.clientId, accountId: UNKNOWN }
            : { ownerId: customerId, customerId }),
        };
        const create = `${name.charAt(0).toLowerCase()}${name.slice(1)}(input: $input) { ${made} }`;
        const { data, errors } = await gateway.query(
          `mutation ($input: ${name}Input!) { one: ${create} two: ${create} }`,
          { input },
        );
        expect(errors).toBeUndefined();
        const [one, two] = [data.one, data.two].map(({ account }) => account.owner.accounts.totalCount);
        // The service may list the client's own alone.
        const isListed = whose === 'client' || sandboxOptions.choices?.accountsIncludeCustomers === true;
        expect(two - one).toBe(isListed ? 1 : 0);
      },
    );

    it('is created for a customer', async () => {
      const [customerId] = world.customerIds;
      const { account } = await change(CREATE_CUSTOMER_ACCOUNT, {
        customerId,
        bankId: world.bankIds[0],
        ownerId: customerId,
        clientBankAdapterId: world.clientBankAdapterId,
      });
      expect(account).toMatchObject({ ownerType: 'CUSTOMER', owner: { id: customerId } });
    });

    it('is not asked for with an id that is none', async () => {
      expect(
        await change(CREATE_ACCOUNT, {
          bankId: 'x',
          ownerId: UNKNOWN,
          clientBankAdapterId: UNKNOWN,
          accountId: UNKNOWN,
        }),
      ).toMatchObject({ __typename: 'ValidationError', code: 'INVALID_INPUT', field: ['input', 'bankId'] });
      expect(await change(CREATE_CUSTOMER_ACCOUNT, { customerId: '../x' })).toMatchObject({
        field: ['input', 'customerId'],
      });
    });

    it('of a customer that nobody knows is refused', async () => {
      expect(
        await change(CREATE_CUSTOMER_ACCOUNT, {
          customerId: UNKNOWN,
          bankId: world.bankIds[0],
          ownerId: UNKNOWN,
          clientBankAdapterId: world.clientBankAdapterId,
        }),
      ).toMatchObject({ __typename: 'NotFoundError', code: 'NOT_FOUND', upstream: { httpStatus: 404 } });
    });

    it.each(['reset-after-commit', 'truncate', 'garbage', { status: 500 }, { status: 200, body: {} }])(
      'whose answer is %j is unknown, and not asked for again',
      async (what) => {
        await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
        await fault('POST', '/v1/clients/*/private_accounts', what);
        const input = {
          bankId: world.bankIds[0],
          ownerId: world.clientId,
          clientBankAdapterId: world.clientBankAdapterId,
          accountId: UNKNOWN,
        };
        expect(await change(CREATE_ACCOUNT, input)).toEqual({
          __typename: 'OutcomeUnknown',
          safeToRetry: false,
          retryUntil: null,
        });
        const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
        expect(counts['POST /v1/clients/{clientId}/private_accounts']).toBe(1);
      },
    );
  });

  describe('an instrument', () => {
    const card = (more: object = {}) => ({
      sourceBankId: world.bankIds[0],
      alias: 'Nómina de Ana',
      receiver: {
        debitCard: {
          destinationBankId: world.bankIds[1],
          cardNumber: '5555444433332222',
          holderName: 'Ana Ruiz',
          ...more,
        },
      },
    });

    it('is registered from a card, of which four digits can be read', async () => {
      const { instrument } = await change(REGISTER, card());
      expect(instrument).toMatchObject({
        type: 'RECEIVER',
        rfc: 'ND',
        alias: 'Nómina de Ana',
        customerId: null,
        detail: { lastFour: '2222', maskedNumber: '************2222' },
      });
      expect(gateway.log.join('\n')).not.toContain('5555444433332222');
    });

    it('is registered for a customer', async () => {
      const [customerId] = world.customerIds;
      expect((await change(REGISTER, { ...card(), customerId })).instrument.customerId).toBe(customerId);
    });

    it('stands in its customer’s list at once, also where two are registered in one operation', async () => {
      const [customerId] = world.customerIds;
      const listed =
        '... on RegisterInstrumentSuccess { instrument { customer { instruments { totalCount } } } }';
      const { data, errors } = await gateway.query(
        `mutation ($input: RegisterInstrumentInput!) {
          first: registerInstrument(input: $input) { ${listed} } second: registerInstrument(input: $input) { ${listed} }
        }`,
        { input: { ...card(), customerId } },
      );
      expect(errors).toBeUndefined();
      const [first, second] = [data.first, data.second].map(
        ({ instrument }) => instrument.customer.instruments.totalCount,
      );
      expect(second).toBe(first + 1);
    });

    it('is registered from a virtual CLABE, whose fields are passed on as they are', async () => {
      const { bank, clabe, holder } = sandboxOptions.choices?.virtualClabeFields ?? {
        bank: '',
        clabe: '',
        holder: '',
      };
      const virtualClabe = {
        [bank]: world.bankIds[0],
        [clabe]: '646180277200000014',
        [holder]: 'Ana Ruiz',
      };
      const { instrument } = await change(REGISTER, { ...card(), receiver: { virtualClabe } });
      expect(instrument.detail).toEqual({ clabe: '646180277200000014' });
    });

    it.each([
      ['a card number of 15 digits', { cardNumber: '555544443333222' }, 'cardNumber'],
      ['a card number with a letter', { cardNumber: '555544443333222x' }, 'cardNumber'],
      ['a holder’s name of 41 characters', { holderName: 'ñ'.repeat(41) }, 'holderName'],
      ['a bank that is no id', { destinationBankId: 'bbva' }, 'destinationBankId'],
    ])('with %s is not asked for', async (_what, wrong, field) => {
      const result = await change(REGISTER, card(wrong));
      expect(result).toMatchObject({
        __typename: 'ValidationError',
        code: 'INVALID_INPUT',
        field: ['input', 'receiver', 'debitCard', field],
        upstream: null,
      });
      expect(result.message).not.toMatch(/\d{15}/);
    });

    it('is registered from exactly one form', async () => {
      for (const receiver of [{}, { ...card().receiver, virtualClabe: {} }, { debitCard: null }]) {
        const { errors } = await gateway.query(REGISTER, { input: { ...card(), receiver } });
        expect(errors?.[0]?.extensions['code']).toBe('BAD_USER_INPUT');
      }
    });
  });

  describe('a webhook', () => {
    it('without an address feeds the gateway, with a token that its receiver can check', async () => {
      const { webhook, token } = await change(CREATE_WEBHOOK, { type: 'STATUS_UPDATE' });
      expect(webhook).toMatchObject({
        type: 'STATUS_UPDATE',
        status: 'ACTIVE',
        authType: 'AUTH',
        feedsGateway: true,
        url: `${gateway.url}/webhooks/${world.clientId}/STATUS_UPDATE/***`,
      });
      const registered = (await webhooks()).find(({ id }) => id === webhook.id);
      expect(registered?.url).toMatch(/\/STATUS_UPDATE\/[\w-]{43}$/);
      expect(token).toMatch(/^[\w-]{43}$/);
      const again = { type: 'STATUS_UPDATE', url: registered?.url };
      const own = await change(CREATE_WEBHOOK, { ...again, token: 'another' });
      expect(own).toMatchObject({ __typename: 'ValidationError', field: ['input', 'token'] });
      const misled = await change(CREATE_WEBHOOK, { ...again, type: 'CEP' });
      expect(misled).toMatchObject({ __typename: 'ValidationError', field: ['input', 'url'] });
      const legacy = await change(CREATE_LEGACY, { ...again, token: 'another' });
      expect(legacy).toMatchObject({ __typename: 'ValidationError', field: ['input', 'token'] });
      // Its input has no token to leave out.
      expect(legacy.message).toContain('use createWebhook');
      expect(legacy.message).not.toContain('left out');
    });

    it('at the address of another type or client does not feed the gateway, and no token makes it', async () => {
      const { clientId } = world;
      const otherClient = '11111111-2222-4333-8444-555555555555';
      const urls = [
        gateway.ingress.url(clientId, 'CEP'),
        gateway.ingress.url(clientId, 'MONEY_IN'),
        gateway.ingress.url(otherClient, 'CEP'),
      ];
      const feeds = [];
      const refused = [];
      for (const url of urls) {
        const path = `/v1/clients/${clientId}/webhooks`;
        const body = { client_id: clientId, url, token: 'theirs', webhook_type: 'CEP', auth_type: 'AUTH' };
        const { id } = await control(gateway.sandbox, 'POST', path, body);
        const { data } = await gateway.query('query ($id: ID!) { webhook(id: $id) { feedsGateway } }', {
          id,
        });
        feeds.push(data.webhook.feedsGateway);
        const { code, field } = await change(UPDATE_WEBHOOK, { id, token: 'new' });
        refused.push({ code, field });
      }
      expect(feeds).toEqual([true, false, false]);
      // Each is told of what was sent.
      expect(refused).toEqual(Array(3).fill({ code: 'INVALID_INPUT', field: ['input', 'token'] }));
    });

    it('with an address of its own has the token given, or one that the gateway makes', async () => {
      const url = 'https://example.mx/hooks';
      const given = await change(CREATE_WEBHOOK, { type: 'CEP', url, token: 'my secret' });
      expect(given).toMatchObject({ token: 'my secret', webhook: { url, feedsGateway: false } });
      const signed = await change(CREATE_WEBHOOK, { type: 'CEP', url, authType: 'HMAC' });
      expect(signed.webhook.authType).toBe('HMAC');
      const made = await change(CREATE_WEBHOOK, { type: 'CEP', url });
      expect(made.token).toMatch(/^[\w-]{43}$/);
      expect((await webhooks()).find(({ id }) => id === made.webhook.id)?.token).toBe(made.token);
    });

    it('is changed in what is given alone, and shown as the list has it afterwards', async () => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'CEP', url: 'https://example.mx/a' });
      expect(await change(UPDATE_WEBHOOK, { id: webhook.id, status: 'INACTIVE', url: null })).toEqual({
        __typename: 'UpdateWebhookSuccess',
        id: webhook.id,
        webhook: { id: webhook.id, url: 'https://example.mx/a', status: 'INACTIVE' },
      });
      const changed = await change(UPDATE_WEBHOOK, {
        id: webhook.id,
        url: 'https://example.mx/b',
        token: 'new secret',
        auth: { auth_header: 'X-Token' },
      });
      expect(changed.webhook).toMatchObject({ url: 'https://example.mx/b', status: 'INACTIVE' });
    });

    it('is shown as each of two changes in one operation leaves it', async () => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'CEP', url: 'https://example.mx/twice' });
      const shown = '... on UpdateWebhookSuccess { webhook { status } }';
      const [one, two] = ['INACTIVE', 'ACTIVE'].map((status) => ({ id: webhook.id, status }));
      const { data, errors } = await gateway.query(
        `mutation ($one: UpdateWebhookInput!, $two: UpdateWebhookInput!) {
          one: updateWebhook(input: $one) { ${shown} } two: updateWebhook(input: $two) { ${shown} } }`,
        { one, two },
      );
      expect(errors).toBeUndefined();
      expect([data.one, data.two].map((changed) => changed.webhook.status)).toEqual(['INACTIVE', 'ACTIVE']);
    });

    it('has no address that is masked, as one is that a form has read and sends back', async () => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'STATUS_UPDATE' });
      const registered = (await webhooks()).find(({ id }) => id === webhook.id)?.url;
      for (const url of [webhook.url, `${webhook.url}?x=1`]) {
        const sentBack = { id: webhook.id, url, status: 'ACTIVE' };
        const refused = { __typename: 'ValidationError', code: 'INVALID_INPUT', field: ['input', 'url'] };
        expect(await change(UPDATE_WEBHOOK, sentBack)).toMatchObject(refused);
        expect(await change(CREATE_WEBHOOK, { type: 'STATUS_UPDATE', url })).toMatchObject(refused);
      }
      expect((await webhooks()).find(({ id }) => id === webhook.id)?.url).toBe(registered);
      const starred = 'https://example.mx/webhooks/***';
      expect((await change(CREATE_WEBHOOK, { type: 'CEP', url: starred })).webhook.url).toBe(starred);
    });

    it.each<[string, (address: string) => string]>([
      ['with a query', (address) => `${address}?env=prod`],
      ['with a fragment', (address) => `${address}#x`],
      ['under another signature', (address) => `${address.slice(0, -1)}${address.endsWith('A') ? 'B' : 'A'}`],
      ['cut short', (address) => address.slice(0, -20)],
    ])('has not the gateway’s own address %s, at which it takes nothing in', async (_how, spoil) => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'MONEY_IN' });
      const before = await webhooks();
      const refused = { __typename: 'ValidationError', code: 'INVALID_INPUT', field: ['input', 'url'] };
      for (const type of ['MONEY_IN', 'STATUS_UPDATE'] as const) {
        const url = spoil(gateway.ingress.url(world.clientId, type) ?? '');
        const input = { type: 'MONEY_IN', url };
        expect(await change(CREATE_WEBHOOK, input)).toMatchObject(refused);
        expect(await change(CREATE_LEGACY, { ...input, token: 'theirs' })).toMatchObject(refused);
        expect(await change(UPDATE_WEBHOOK, { id: webhook.id, url })).toMatchObject(refused);
      }
      expect(await webhooks()).toEqual(before);
    });

    it('that feeds the gateway keeps the token that its receiver checks, and an address of its own type', async () => {
      const own = await change(CREATE_WEBHOOK, { type: 'CEP' });
      const other = await change(CREATE_WEBHOOK, { type: 'MONEY_IN' });
      const away = await change(CREATE_WEBHOOK, {
        type: 'CEP',
        url: 'https://example.mx/g',
        token: 'theirs',
      });
      const registered = async ({ webhook }: { webhook: { id: string } }) =>
        (await webhooks()).find(({ id }) => id === webhook.id);
      const refused = (field: string) => ({ code: 'INVALID_INPUT', field: ['input', field] });
      const before = await webhooks();
      const address = (await registered(own))?.url;
      expect(await change(UPDATE_WEBHOOK, { id: own.webhook.id, token: 'new' })).toMatchObject(
        refused('token'),
      );
      expect(await change(UPDATE_WEBHOOK, { id: away.webhook.id, url: address, token: 'new' })).toMatchObject(
        refused('token'),
      );
      const othersAddress = (await registered(other))?.url;
      expect(await change(UPDATE_WEBHOOK, { id: away.webhook.id, url: othersAddress })).toMatchObject(
        refused('url'),
      );
      expect(await webhooks()).toEqual(before);
      // One that is to feed it from now on has the token that it needs.
      await change(UPDATE_WEBHOOK, { id: away.webhook.id, url: address });
      expect(await registered(away)).toMatchObject({ url: address, token: own.token });
      await change(UPDATE_WEBHOOK, { id: away.webhook.id, url: 'https://example.mx/g', token: 'theirs' });
      expect(await registered(away)).toMatchObject({ url: 'https://example.mx/g', token: 'theirs' });
    });

    it('is not changed by nothing, nor in fields that are not its', async () => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'CEP', url: 'https://example.mx/c' });
      expect(await change(UPDATE_WEBHOOK, { id: webhook.id })).toMatchObject({
        code: 'INVALID_INPUT',
        field: ['input'],
      });
      for (const auth of [{ url: 'https://evil.example' }, JSON.parse('{"__proto__":{"auth_x":1}}')]) {
        expect(await change(UPDATE_WEBHOOK, { id: webhook.id, auth })).toMatchObject({
          field: ['input', 'auth'],
        });
      }
    });

    it('is deleted, and is active no longer', async () => {
      const { webhook } = await change(CREATE_WEBHOOK, { type: 'CEP', url: 'https://example.mx/d' });
      expect(await change(DELETE_WEBHOOK, { id: webhook.id })).toEqual({
        __typename: 'DeleteWebhookSuccess',
        id: webhook.id,
      });
      expect((await webhooks()).find(({ id }) => id === webhook.id)?.webhookStatus ?? 'gone').not.toBe(
        'ACTIVE',
      );
    });

    it('that nobody knows is NOT_FOUND, and an id that is none is refused', async () => {
      expect(await change(UPDATE_WEBHOOK, { id: UNKNOWN, token: 'x' })).toMatchObject({
        __typename: 'NotFoundError',
        code: 'NOT_FOUND',
      });
      expect(await change(DELETE_WEBHOOK, { id: UNKNOWN })).toMatchObject({
        __typename: 'NotFoundError',
        code: 'NOT_FOUND',
      });
      expect(await change(UPDATE_WEBHOOK, { id: '../x', token: 'x' })).toMatchObject({
        __typename: 'ValidationError',
        field: ['input', 'id'],
      });
      expect(await change(DELETE_WEBHOOK, { id: '../x' })).toMatchObject({
        __typename: 'ValidationError',
        field: ['input', 'id'],
      });
    });

    it.each([
      [CREATE_WEBHOOK, 'token', { type: 'CEP', url: 'https://example.mx/e', token: '' }],
      [CREATE_WEBHOOK, 'authType', { type: 'CEP', url: 'https://example.mx/e', authType: '' }],
      [UPDATE_WEBHOOK, 'token', { id: UNKNOWN, token: '' }],
      [UPDATE_WEBHOOK, 'authType', { id: UNKNOWN, token: 'x', authType: '' }],
    ])('is sent nothing empty', async (document, field, input) => {
      expect(await change(document, input)).toMatchObject({
        __typename: 'ValidationError',
        code: 'INVALID_INPUT',
        field: ['input', field],
      });
    });

    it('whose registration got no clear answer is unknown; a change is an error that may be repeated', async () => {
      await fault('POST', '/v1/clients/*/webhooks', 'reset-after-commit');
      expect(await change(CREATE_WEBHOOK, { type: 'CEP', url: 'https://example.mx/e' })).toMatchObject({
        __typename: 'OutcomeUnknown',
        safeToRetry: false,
      });
      const lost = (await webhooks()).find(({ url }) => url === 'https://example.mx/e');
      await fault('PATCH', '/v1/clients/*/webhooks/*', 'reset-after-commit');
      const { errors } = await gateway.query(UPDATE_WEBHOOK, { input: { id: lost?.id, status: 'INACTIVE' } });
      expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_UNAVAILABLE');
    });

    it('can still be registered in the deprecated way', async () => {
      const input = { type: 'STATUS_UPDATE', url: 'https://example.mx/f', token: 'secret' };
      expect(await change(CREATE_LEGACY, input)).toMatchObject({
        token: 'secret',
        webhook: { url: input.url, type: 'STATUS_UPDATE' },
      });
    });
  });

  it.each(KEYLESS_CHANGES.filter(({ isRenewed }) => isRenewed === undefined))(
    '$name is unknown where the id in its answer is empty',
    async ({ name, route, input }) => {
      const { method, path } = matchOf(route);
      await fault(method, path, { status: 201, body: WITHOUT_ID });
      expect(await change(documentOf(name, UNCLEAR), input(world))).toEqual({
        __typename: 'OutcomeUnknown',
        safeToRetry: false,
        retryUntil: null,
      });
    },
  );

  it('each change without an idempotency key has succeeded in a test above', () => {
    expect([...done].toSorted()).toEqual(KEYLESS_CHANGES.map(({ name }) => name).toSorted());
  });

  describe('an access token', () => {
    const issue = (input: object, headers: Record<string, string | undefined>) =>
      gateway.query(ISSUE_TOKEN, { input }, { authorization: undefined, ...headers });

    // Last, as a new token may end the one that the other tests use.
    it('is issued for id and secret with the api key, is accepted, and is logged nowhere', async () => {
      const { data } = await issue(
        { clientId: world.clientId, clientSecret: world.clientSecret },
        { 'x-api-key': world.apiKey },
      );
      expect(data.result).toMatchObject({ __typename: 'CredentialToken', status: 'ACTIVE', deletedAt: null });
      const asked = await gateway.query(
        '{ client { id } }',
        {},
        { authorization: `Bearer ${data.result.token}` },
      );
      expect(asked.data).toEqual({ client: { id: world.clientId } });
      const log = gateway.log.join('\n');
      for (const secret of [data.result.token, world.clientSecret, world.apiKey])
        expect(log).not.toContain(secret);
    });

    it('is not issued without the api key, or to a client that is no id', async () => {
      const without = await issue({ clientId: world.clientId, clientSecret: 'x' }, {});
      expect(without.errors?.[0]?.extensions['code']).toBe('UNAUTHENTICATED');
      const { data } = await issue({ clientId: 'me', clientSecret: 'x' }, { 'x-api-key': world.apiKey });
      expect(data.result).toMatchObject({ __typename: 'ValidationError', field: ['input', 'clientId'] });
    });

    it('is not issued for a wrong secret, twice over, and is for the right one under the same key', async () => {
      const key = { 'x-api-key': world.apiKey };
      const asked = async () => {
        const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
        return counts['POST /v1/clients/{clientId}/auth/credential-tokens'];
      };
      const wrong = { clientId: world.clientId, clientSecret: 'wrong' };
      const first = await issue(wrong, key);
      expect(first.errors).toBeUndefined();
      expect(first.data.result).toMatchObject({
        __typename: 'RefusedError',
        code: 'REFUSED',
        message: expect.stringContaining('clientSecret'),
        upstream: { httpStatus: expect.any(Number) },
      });
      const calls = await asked();
      const again = await issue(wrong, key);
      expect(again.data.result).toMatchObject({
        __typename: 'RefusedError',
        message: expect.stringContaining('just refused'),
        upstream: null,
      });
      expect(await asked()).toBe(calls);
      const right = await issue({ clientId: world.clientId, clientSecret: world.clientSecret }, key);
      expect(right.data.result).toMatchObject({ __typename: 'CredentialToken' });
    });

    it('and credentials are asked for once in an operation', async () => {
      const field = `credentials(clientId: "${world.clientId}") { id }`;
      const { errors } = await gateway.query(
        `{ one: ${field} two: ${field} }`,
        {},
        { authorization: undefined, 'x-api-key': world.apiKey },
      );
      expect(errors).toMatchObject([{ path: ['two'], extensions: { code: 'TOO_COMPLEX' } }]);
    });

    it('is not asked for with an empty secret', async () => {
      const { data } = await issue(
        { clientId: world.clientId, clientSecret: '' },
        { 'x-api-key': world.apiKey },
      );
      expect(data.result).toMatchObject({ __typename: 'ValidationError', field: ['input', 'clientSecret'] });
    });

    it('is not issued under a wrong key, which is told of the key and not of a token', async () => {
      const { data } = await issue(
        { clientId: world.clientId, clientSecret: world.clientSecret },
        { 'x-api-key': 'wrong' },
      );
      expect(data.result).toMatchObject({
        __typename: 'RefusedError',
        message: expect.stringContaining('x-api-key'),
      });
      const { errors } = await gateway.query(
        `{ credentials(clientId: "${world.clientId}") { id } }`,
        {},
        { authorization: undefined, 'x-api-key': 'wrong' },
      );
      expect(errors).toMatchObject([
        {
          message: expect.stringContaining('x-api-key'),
          extensions: { code: 'UNAUTHENTICATED', header: 'x-api-key' },
        },
      ]);
    });
  });
});

it('a webhook cannot feed a gateway that does not know its own address, and the answer says what is missing', async () => {
  await using gateway = await startGateway({ config: { publicUrl: undefined }, webhooks: false });
  const { data } = await gateway.query(CREATE_WEBHOOK, { input: { type: 'CEP' } });
  expect(data.result).toMatchObject({ __typename: 'ValidationError', field: ['input', 'url'] });
  expect(data.result.message).toContain('PUBLIC_URL');
});
