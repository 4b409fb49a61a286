import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { documentOf, KEYLESS_CHANGES, matchOf } from '../helpers/keyless-changes.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { serviceError } from '../money/upstream.ts';

let sandbox: Sandbox;
let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  world = await control(sandbox, 'GET', '/sandbox');
});
afterAll(() => sandbox.stop());

const RENEWED = KEYLESS_CHANGES.filter(({ isRenewed }) => isRenewed);
const SENT_ONCE = KEYLESS_CHANGES.filter(({ isRenewed }) => !isRenewed);

const TOKENS = 'POST /v1/clients/{clientId}/auth/credential-tokens';

// A token is renewed for a 401 once in half a minute: each case has a gateway of its own.
describe.each(SENT_ONCE)('a 401 to $name', ({ name, route, input }) => {
  let authorization: string;
  beforeEach(async () => {
    await control(sandbox, 'DELETE', '/sandbox/faults');
    gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: { ...PATIENT, service: serviceFor(sandbox) },
    });
    authorization = `Bearer ${await callerToken()}`;
    await gateway.query('{ client { accounts { totalCount } } }', {}, { authorization });
    await control(sandbox, 'DELETE', '/sandbox/requests');
    return () => gateway.stop();
  });

  const change = async (fault: object) => {
    await control(sandbox, 'POST', '/sandbox/faults', { match: matchOf(route), fault, times: 1 });
    const { data, errors } = await gateway.query(
      documentOf(name),
      { input: input(world) },
      { authorization },
    );
    expect(errors).toBeUndefined();
    const { faults } = await control(sandbox, 'GET', '/sandbox/faults');
    expect(faults, 'the 401 was given').toMatchObject([{ used: 1 }]);
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    return { type: data.result.__typename, sent: counts[route], tokens: counts[TOKENS] };
  };

  it('that the service gives has it sent once more, with another token', async () => {
    const fault = { status: 401, body: JSON.parse(serviceError(401)) };
    expect(await change(fault)).toEqual({ type: expect.stringMatching(/Success$/), sent: 2, tokens: 1 });
  });

  it.each([
    ['a page', '<h1>Request blocked</h1>'],
    ['nothing', ''],
    ['an error of another form', { code: 401, message: 'Unauthorized' }],
  ])(
    'with %s is not known to be its own: it is not sent again, and its outcome is unknown',
    async (_what, body) => {
      const told = await change({ status: 401, commit: true, body });
      expect(told).toEqual({ type: 'OutcomeUnknown', sent: 1, tokens: undefined });
    },
  );
});

describe.each(RENEWED)('a 401 to $name', ({ name, route, input }) => {
  it.each([
    ['that the service gives', JSON.parse(serviceError(401))],
    ['with a page', '<h1>Request blocked</h1>'],
  ])('%s has it sent once more, with another token: twice does no harm', async (_what, body) => {
    await control(sandbox, 'DELETE', '/sandbox/faults');
    await using own = await startGateway({
      sandbox,
      webhooks: false,
      config: { ...PATIENT, service: serviceFor(sandbox) },
    });
    const headers = { authorization: `Bearer ${await callerToken()}` };
    const url = `https://example.mx/${randomUUID()}`;
    const made = await own.query(
      documentOf('createWebhook', '... on CreateWebhookSuccess { webhook { id } }'),
      { input: { type: 'CEP', url } },
      headers,
    );
    const { id } = made.data.result.webhook;
    const fault = { status: 401, body };
    await control(sandbox, 'POST', '/sandbox/faults', { match: matchOf(route), fault, times: 1 });
    await control(sandbox, 'DELETE', '/sandbox/requests');
    const given = { input: input({ ...world, webhookId: id }) };
    const { data, errors } = await own.query(documentOf(name), given, headers);
    expect(errors).toBeUndefined();
    expect(data.result.__typename).toMatch(/Success$/);
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    expect(counts[route]).toBe(2);
  });
});
