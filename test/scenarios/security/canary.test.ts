import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { ingressToken, ingressUrl } from '../../../src/ingress/addresses.ts';
import { pasarela } from '../../cli/run.ts';
import { control } from '../../helpers/gateway.ts';
import { type Program, startProgram } from '../../helpers/program.ts';
import { ASKING, type RawRequest } from '../../helpers/raw.ts';
import { type RedisServer, startRedis } from '../../helpers/redis.ts';
import { AUDIENCE, callerToken, ISSUER } from '../../helpers/service.ts';
import { subscribeOverSse, subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

const REDIS_PASSWORD = 'canary-redis-password';
const JWT_SECRET = 'canary-jwt-secret-of-forty-characters-or-so';
const WEBHOOK_SECRET = 'canary-webhook-secret-of-forty-characters';
const CARD = '4152319876543210';
const CLABE = '646180157098765432';
const ACCOUNT = '104098765432';
const RFC = 'CANA800612QA4';
const NAME = 'Canaria Secreta Plumas';
const KEY = 'canary-idempotency-key';

let sandbox: Sandbox;
let redis: RedisServer;
let collector: ReturnType<typeof createServer>;
let program: Program;
let folder: string;
let url: string;
let token: string;
/** Everything that the gateway has told anybody but its callers' own data. */
let traces = '';
const errors: string[] = [];
const closings: string[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  redis = await startRedis();
  await redis.admin.config('SET', 'requirepass', REDIS_PASSWORD);
  collector = createServer((request, response) => {
    request.on('data', (chunk) => {
      traces += String(chunk);
    });
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  folder = await mkdtemp(join(tmpdir(), 'pasarela-canary-'));
  program = startProgram('src/start.js', {
    PORT: '0',
    UPSTREAM_URL: sandbox.url,
    UPSTREAM_TIMEOUT_MS: '2000',
    AUTH_MODE: 'service',
    UPSTREAM_API_KEY: sandbox.apiKey,
    UPSTREAM_CLIENT_ID: sandbox.clientId,
    UPSTREAM_CLIENT_SECRET: sandbox.clientSecret,
    AUTH_JWT_SECRET: JWT_SECRET,
    AUTH_ISSUER: ISSUER,
    AUTH_AUDIENCE: AUDIENCE,
    REDIS_URL: redis.url.replace('://', `://:${REDIS_PASSWORD}@`),
    WEBHOOK_SECRET,
    DATA_DIR: folder,
    LOG_LEVEL: 'trace',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  });
  const [, listening = ''] = await program.says(/"url":"(http:[^"]+)"/);
  url = listening;
  token = await callerToken({}, JWT_SECRET);
});

afterAll(async () => {
  await program.end('SIGKILL');
  collector.closeAllConnections();
  collector.close();
  await redis.stop();
  await sandbox.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Over all transports; what went wrong is kept. */
async function ask(request: RawRequest, authorization = token): Promise<void> {
  for (const [, over] of ASKING) {
    const answer = await over(`${url}/graphql`, authorization, request).catch((error: unknown) => {
      closings.push(String(error));
      return { errors: undefined };
    });
    errors.push(JSON.stringify(answer.errors ?? []));
  }
}

const REGISTER = `mutation ($input: RegisterInstrumentInput!) {
  registerInstrument(input: $input) { __typename ... on UserError { message field upstream { message detail } } }
}`;

const registration = (changes: object) => ({
  sourceBankId: randomUUID(),
  alias: NAME,
  rfc: RFC,
  receiver: { debitCard: { destinationBankId: randomUUID(), cardNumber: CARD, holderName: NAME } },
  ...changes,
});

/** Personal data and secrets in every place where a caller may put them, rightly or wrongly. */
const REQUESTS: readonly RawRequest[] = [
  { query: REGISTER, variables: { input: registration({}) } },
  { query: REGISTER, variables: { input: registration({ rfc: Number(CARD) }) } },
  { query: REGISTER, variables: { input: registration({ sourceBankId: { name: NAME } }) } },
  { query: REGISTER, variables: { input: registration({ [`x${CARD}`]: NAME }) } },
  { query: REGISTER, variables: { input: registration({ receiver: { debitCard: NAME } }) } },
  {
    query: REGISTER,
    variables: {
      input: registration({ receiver: { virtualClabe: { clabe_number: CLABE, holder_name: NAME } } }),
    },
  },
  { query: REGISTER, variables: { input: NAME } },
  { query: REGISTER, variables: { input: [registration({})] } },
  { query: `{ account(by: { clabe: "${CLABE}" }) { id } }` },
  { query: `{ account(by: { clabe: "${NAME}" }) { id } }` },
  { query: `{ account(by: { clabe: ${CLABE} }) { id } }` },
  { query: `{ account(by: { accountNumber: "${ACCOUNT}", clabe: "${CLABE}" }) { id } }` },
  { query: `{ account(by: "${NAME}") { id } }` },
  { query: `{ instrument(id: "${NAME}") { id } }` },
  { query: `{ instrument(id: { name: "${NAME}" }) { id } }` },
  { query: `{ events(types: ["${NAME}"]) { nodes { id } } }` },
  { query: 'query ($t: [EventType!]) { events(types: $t) { nodes { id } } }', variables: { t: [NAME] } },
  { query: 'query ($n: Int) { client { instruments(first: $n) { totalCount } } }', variables: { n: NAME } },
  { query: `{ client { id } } "${NAME}"` },
  { query: `{ client { id } ${CARD} }` },
  { query: `{ client(card: "${CARD}", name: "${NAME}") { id } }` },
  { query: `{ client { id } # ${NAME} ${CARD}` },
  {
    query: `mutation ($input: RefundTransactionInput!) { refundTransaction(input: $input) { __typename ... on UserError { message } } }`,
    variables: { input: { idempotencyKey: KEY, transactionId: randomUUID(), as: { reason: NAME } } },
  },
  {
    query: `mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { __typename ... on UserError { message } } }`,
    variables: { input: { type: 'CEP', url: `ftp://user:${REDIS_PASSWORD}@x`, token: WEBHOOK_SECRET } },
  },
  {
    query: `mutation { issueCredentialToken(input: { clientId: "${randomUUID()}", clientSecret: "${WEBHOOK_SECRET}" }) { __typename } }`,
  },
];

it('no secret and nothing about people is in a log line, an error, a trace, a metric, the journal of payments or the name of a key', async () => {
  for (const request of REQUESTS) await ask(request);
  const seeded = await control(sandbox, 'GET', '/sandbox');
  await ask({
    query: 'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }',
    variables: {
      input: {
        ...{ idempotencyKey: KEY, amount: '1.00', description: NAME, externalReference: '1' },
        sourceInstrumentId: seeded.centralizingInstrumentId,
        destinationInstrumentId: seeded.cardInstrumentIds[0],
      },
    },
  });
  // Tokens of all sorts.
  for (const other of [`${token}x`, token.slice(0, 40), await callerToken(), CARD, NAME]) {
    await ask({ query: '{ client { id } }' }, other);
  }

  // Streams, and webhooks that feed them; wrong ones too.
  await using socket = subscribeOverWebSocket(`${url}/graphql`, token, {
    query: 'subscription { events { __typename } }',
  });
  await using sse = subscribeOverSse(`${url}/graphql`, token, {
    query: 'subscription { moneyIn { payer { name rfc account } } }',
  });
  const signed = ingressUrl(url, sandbox.clientId, 'MONEY_IN', WEBHOOK_SECRET);
  const signature = signed.split('/').at(-1) ?? '';
  const body = {
    ...{ id: randomUUID(), amount: '1.00', sub_category: 'SPEI_CREDIT', owner_id: sandbox.clientId },
    ...{ payer_name: NAME, payer_rfc: RFC, payer_account: CLABE, beneficiary_account: CLABE },
  };
  const post = (address: string, content: unknown) =>
    fetch(address, {
      method: 'POST',
      headers: { authorization: `Bearer ${ingressToken(sandbox.clientId, 'MONEY_IN', WEBHOOK_SECRET)}` },
      body: typeof content === 'string' ? content : JSON.stringify(content),
    });
  await until(async () => {
    await post(signed, { id_msg: randomUUID(), msg_name: 'MONEY_IN', body });
    return socket.results.length > 0 && sse.results.length > 0;
  });
  const repeated = randomUUID();
  await post(signed, { id_msg: repeated, body });
  await post(signed, { id_msg: repeated, body: { ...body, amount: '2.00' } });
  for (const content of [`{"${NAME}": "${CARD}"`, { id_msg: NAME, body: { payer_name: NAME } }, NAME]) {
    await post(signed, content);
    await post(signed.slice(0, -1), content);
    await post(`${signed}?name=${encodeURIComponent(NAME)}`, content);
  }

  // An upstream that says too much when it fails, and a Redis that goes away.
  for (const status of [500, 400, 401]) {
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/accounts' },
      fault: { status, body: { message: `${NAME} ${CARD} ${RFC}`, token, trace: sandbox.clientSecret } },
    });
    await ask({ query: '{ client { accounts { totalCount } } }' });
    await control(sandbox, 'DELETE', '/sandbox/faults');
  }
  const keys = (await redis.admin.keys('*')).join('\n');
  expect(keys).toContain('pasarela:money');
  const lines = await redis.admin.xrange(`pasarela:money:{${sandbox.clientId}}:journal`, '-', '+');
  const REDIS_URL = redis.url.replace('://', `://:${REDIS_PASSWORD}@`);
  const exported = await pasarela(['payments', 'export'], { REDIS_URL });
  expect(exported.stdout).toContain('"step":"done"');
  const journal = `${lines.join('\n')}\n${exported.stdout}\n${exported.stderr}`;
  await redis.kill();
  for (const request of REQUESTS.slice(0, 3)) await ask(request);
  await post(signed, { id_msg: randomUUID(), body });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  await until(() => traces.includes('webhook'));
  expect(await program.end('SIGTERM')).toBe(0);

  const told = {
    log: program.output(),
    errors: [...errors, ...closings].join('\n'),
    traces,
    metrics,
    keys,
    journal,
  };
  const [, tokenClaims = '', tokenSignature = ''] = token.split('.');
  const canaries = {
    ...{ REDIS_PASSWORD, JWT_SECRET, WEBHOOK_SECRET, CARD, CLABE, ACCOUNT, RFC, NAME, KEY, signature },
    ...{ tokenClaims, tokenSignature, apiKey: sandbox.apiKey, clientSecret: sandbox.clientSecret },
    ...{
      upstreamToken: sandbox.accessToken,
      token: ingressToken(sandbox.clientId, 'MONEY_IN', WEBHOOK_SECRET),
    },
  };
  expect(told.log.split('\n').length).toBeGreaterThan(5);
  for (const [where, text] of Object.entries(told)) {
    for (const [what, canary] of Object.entries(canaries)) {
      const at = text.indexOf(canary);
      expect(at < 0 ? 'nowhere' : `${what} in ${where}: ${text.slice(Math.max(0, at - 150), at + 50)}`).toBe(
        'nowhere',
      );
    }
  }
});
