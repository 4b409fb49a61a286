import { expect, it } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { doubtsOf } from '../../src/app/config-hints.ts';
import { configure } from '../../src/app/configure.ts';
import { createOwnAddresses } from '../../src/app/own-addresses.ts';
import { Secret } from '../../src/common/secret.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';

const CLIENT = '11111111-2222-4333-8444-555555555555';
const SERVICE = {
  ...{ AUTH_MODE: 'service', UPSTREAM_API_KEY: 'key', UPSTREAM_CLIENT_ID: CLIENT },
  ...{ UPSTREAM_CLIENT_SECRET: 'secret', AUTH_JWT_SECRET: 'secret' },
  ...{ AUTH_ISSUER: 'https://id.example.mx', AUTH_AUDIENCE: 'pasarela' },
};
const configOf = (environment: Record<string, string>) =>
  configure(readVariables(environment), 'http://127.0.0.1:9');

it('each number that an operator sets arrives at its own place, in its unit', () => {
  const names = {
    ...{ PORT: 4100, KEEP_ALIVE_TIMEOUT_MS: 5_101, SOCKET_LIFETIME: 102 },
    ...{ SHUTDOWN_DELAY_MS: 103, SHUTDOWN_GRACE_MS: 5_104, UPSTREAM_TIMEOUT_MS: 105 },
    ...{ OPERATION_TIMEOUT_MS: 1_106, UPSTREAM_ANSWER_BYTES: 70_107, UPSTREAM_CALLS_PER_CALLER: 108 },
    ...{ OPERATIONS_QUEUE: 109, LISTS_MAX_AGE: 110, EVENTS_RETENTION: 111, EVENTS_RETENTION_BYTES: 112 },
    ...{ JOURNAL_RETENTION: 113, UPSTREAM_POLLS_PER_SECOND: 114, LIMIT_TOKENS: 115, LIMIT_DEPTH: 116 },
    ...{ LIMIT_ALIASES: 117, LIMIT_DIRECTIVES: 118, LIMIT_COST: 119, LIMIT_STREAMS: 120 },
    ...{ LIMIT_STREAMS_PER_ADDRESS: 121, LIMIT_STREAMS_PER_CLIENT: 122, LIMIT_STREAMS_PER_CALLER: 123 },
  };
  const given = Object.entries(names).map(([name, value]) => [name, String(value)]);
  expect(configOf(Object.fromEntries(given))).toMatchObject({
    ...{ port: 4_100, keepAliveTimeoutMs: 5_101, socketLifetimeMs: 102_000 },
    ...{ shutdown: { delayMs: 103, graceMs: 5_104 }, upstreamTimeoutMs: 105, operationTimeoutMs: 1_106 },
    ...{ upstreamAnswerBytes: 70_107, upstreamCallsPerCaller: 108, operationsQueue: 109 },
    ...{ listsMaxAgeMs: 110_000, eventsRetention: 111, eventsRetentionBytes: 112 },
    ...{ journalMs: 113 * 24 * 60 * 60 * 1_000, pollsPerSecond: 114 },
    limits: { tokens: 115, depth: 116, aliases: 117, directives: 118, cost: 119 },
    streams: { total: 120, perAddress: 121, perClient: 122, perCaller: 123 },
  });
});

it('a caller may have as many streams as its client, and in service mode 1,000, unless told otherwise', () => {
  const clients = { LIMIT_STREAMS_PER_CLIENT: '77' };
  expect(configOf(clients).streams.perCaller).toBe(77);
  expect(configOf({ ...SERVICE, ...clients }).streams.perCaller).toBe(1_000);
});

it('shows nothing that was not asked for', () => {
  const shown = ({ introspection, upstreamReport, workbench }: ReturnType<typeof configOf>) => [
    introspection,
    upstreamReport,
    workbench?.auth,
  ];
  expect(shown(configOf({}))).toEqual([false, false, undefined]);
  expect(shown(configOf({ GRAPHIQL: 'true' }))).toEqual([false, false, 'passthrough']);
  expect(shown(configOf({ INTROSPECTION: 'true', GRAPHIQL: 'false' }))).toEqual([true, false, undefined]);
  expect(shown(configOf({ ...SERVICE, UPSTREAM_REPORT: 'true', GRAPHIQL: 'true' }))).toEqual([
    ...[false, true, 'service'],
  ]);
});

it('payments go, and browsers of no other origin come, unless an operator says so', () => {
  expect(configOf({}).arePaymentsOff).toBe(false);
  expect(configOf({ PAYMENTS: 'off' }).arePaymentsOff).toBe(true);
  expect(configOf({}).allowsOrigin('https://app.example.mx')).toBe(false);
  const { allowsOrigin } = configOf({ CORS_ORIGINS: 'https://app.example.mx' });
  expect(allowsOrigin('https://app.example.mx')).toBe(true);
  expect(allowsOrigin('https://app.example.mx.evil.mx')).toBe(false);
});

it('an address without TLS is no matter where the service is the sandbox of this process', () => {
  expect(doubtsOf(readVariables({ PUBLIC_URL: 'http://graph.example.mx' }))).toEqual([]);
});

it('the address that is configured stays the public one, whatever the gateway listens at', () => {
  const webhookSecrets = [new Secret('new'), new Secret('old')] as const;
  const listening = 'http://127.0.0.1:4000';
  const addressesOf = (publicUrl: string | undefined) => createOwnAddresses({ publicUrl, webhookSecrets });
  const urlOf = ({ ingress }: ReturnType<typeof addressesOf>) => ingress.url(CLIENT, 'MONEY_IN');
  for (const [publicUrl, before, after] of [
    ['https://graph.example.mx', 'https://graph.example.mx', 'https://graph.example.mx'],
    ['self', undefined, listening],
    [undefined, undefined, undefined],
  ] as const) {
    const addresses = addressesOf(publicUrl);
    const wanted = (base: string | undefined) => base && ingressUrl(base, CLIENT, 'MONEY_IN', 'new');
    expect(urlOf(addresses)).toBe(wanted(before));
    addresses.listensAt(listening);
    expect(urlOf(addresses)).toBe(wanted(after));
  }
});

it('takes an address that the secret before has signed for its own, and none that another has', () => {
  const publicUrl = 'https://graph.example.mx';
  const webhookSecrets = [new Secret('new'), new Secret('old')] as const;
  const { ingress, secrets } = createOwnAddresses({ publicUrl, webhookSecrets });
  expect(secrets).toEqual(['new', 'old']);
  const target = (secret: string) => ingress.target(ingressUrl(publicUrl, CLIENT, 'MONEY_IN', secret));
  const own = expect.objectContaining({ clientId: CLIENT, type: 'MONEY_IN' });
  expect(['new', 'old', 'stranger'].map(target)).toEqual([own, own, undefined]);
});
