import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type TestSandbox } from '../../../packages/sandbox/src/index.ts';
import { type SteppedClock, steppedClock } from '../../helpers/clock.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { cep } from '../../helpers/ingress.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { subscribeOverWebSocket, TRANSPORTS } from '../../helpers/subscriber.ts';

const CEP_STATUS =
  'subscription ($id: ID!) { cepStatus(transactionId: $id) { kind cep { status final beneficiaryName } } }';
const VALIDATE = `mutation ($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) { ... on CreatePennyValidationSuccess { transaction { id } } }
}`;
/** The documented schedule: 90 s three times, then 5 min. */
const FIRST_POLLS = 90_000;
const LATER_POLLS = 300_000;
/** Waits for a reading that lags behind a transaction just made. */
const LAGS = [250, 500, 1_000, 2_000, 4_000];

let gateway: RunningGateway;
let clock: SteppedClock;
let sandbox: TestSandbox;
beforeAll(async () => {
  clock = steppedClock();
  // No webhook is registered: what messages come, the tests send.
  sandbox = await createSandbox();
  gateway = await startGateway({ sandbox, webhooks: false, clock, config: PATIENT });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.close();
});

async function validate(destinationInstrumentId: string | null | undefined): Promise<string> {
  const { data } = await gateway.query(VALIDATE, {
    input: {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: sandbox.centralizingInstrumentId,
      destinationInstrumentId,
    },
  });
  return data.createPennyValidation.transaction.id;
}

const advance = (seconds: number) => sandbox.advance({ seconds });

async function tell(transactionId: string, status: string): Promise<void> {
  const { clientId } = gateway.sandbox;
  const message = cep(clientId, status);
  message.payload['body'] = { id: transactionId, status, processed_at: null };
  const response = await fetch(gateway.ingress.url(clientId, 'CEP') ?? '', {
    method: 'POST',
    body: JSON.stringify(message),
  });
  expect(response.status).toBe(201);
}

describe.each(TRANSPORTS)('over %s, where webhooks cannot be relied on,', (_, subscribe) => {
  const follow = (id: string) =>
    subscribe(gateway.graphql, gateway.sandbox.accessToken, { query: CEP_STATUS, variables: { id } });

  it('a receipt of which no message comes is COMPLETED by reading', async () => {
    const id = await validate(sandbox.clabeInstrumentIds[0]);
    await using subscriber = follow(id);
    await subscriber.received(1);
    await clock.asleep(FIRST_POLLS);
    await advance(200);
    expect(subscriber.results).toHaveLength(1);
    await clock.pass(FIRST_POLLS);
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results.map(({ data }) => data.cepStatus)).toMatchObject([
      { kind: 'SNAPSHOT', cep: { status: 'PENDING', final: false } },
      { kind: 'CHANGE', cep: { status: 'COMPLETED', final: true, beneficiaryName: expect.any(String) } },
    ]);
  });

  it('a receipt that never comes, and of which no message comes, is FAILED by reading', async () => {
    const id = await validate(sandbox.noReceiptInstrumentId);
    await using subscriber = follow(id);
    await subscriber.received(1);
    for (let poll = 0; poll < 3; poll += 1) await clock.pass(FIRST_POLLS);
    await clock.asleep(LATER_POLLS);
    await advance(600);
    await clock.pass(LATER_POLLS);
    await clock.asleep(LATER_POLLS);
    await advance(12_000);
    await clock.pass(LATER_POLLS);
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results.map(({ data }) => data.cepStatus.cep.status)).toEqual([
      'PENDING',
      'DELAYED',
      'FAILED',
    ]);
  });

  it('a transaction that stays unknown is BAD_USER_INPUT, once a lag has been waited for', async () => {
    await using subscriber = follow('00000000-0000-4000-8000-000000000000');
    for (const lag of LAGS) await clock.pass(lag);
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results).toMatchObject([{ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] }]);
  });

  it('a first reading that fails counts as an error of the stream, which has counted as opened', async () => {
    const opened = () =>
      readMetric(gateway.url, 'pasarela_operations_total', 'type="subscription",outcome="ok"');
    const failed = () =>
      readMetric(gateway.url, 'pasarela_stream_errors_total', 'code="UPSTREAM_UNAVAILABLE"');
    const before = [await opened(), await failed()];
    const id = await validate(sandbox.clabeInstrumentIds[0]);
    await sandbox.fail('GET /v1/clients/{clientId}/transactions/{transactionId}', { status: 500, times: 1 });
    await using subscriber = follow(id);
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results).toMatchObject([
      { errors: [{ extensions: { code: 'UPSTREAM_UNAVAILABLE' } }] },
    ]);
    expect([await opened(), await failed()]).toEqual(before.map((count) => count + 1));
  });

  it('a message that comes late takes nothing back', async () => {
    const id = await validate(sandbox.lateReceiptInstrumentId);
    await using subscriber = follow(id);
    await subscriber.received(1);
    for (const status of ['DELAYED', 'PENDING', 'DELAYED', 'COMPLETED', 'PENDING']) await tell(id, status);
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results.map(({ data }) => data.cepStatus.cep.status)).toEqual([
      'PENDING',
      'DELAYED',
      'COMPLETED',
    ]);
  });
});

describe('phones with a token each that wait for one receipt', () => {
  it('are all told what one reading finds, where no message comes', async () => {
    const phones = 100;
    const stepped = steppedClock();
    await using service = await startGateway({
      sandbox,
      webhooks: false,
      clock: stepped,
      config: { ...PATIENT, service: serviceFor(sandbox) },
    });
    const id = await validate(sandbox.clabeInstrumentIds[0]);
    const tokens = await Promise.all(
      Array.from({ length: phones }, (_, index) => callerToken({ sub: `phone ${index}` })),
    );
    const subscribers = tokens.map((token) =>
      subscribeOverWebSocket(service.graphql, token, { query: CEP_STATUS, variables: { id } }),
    );
    await Promise.all(subscribers.map((subscriber) => subscriber.received(1)));
    await stepped.asleep(FIRST_POLLS);
    await advance(200);
    const reads = async () => {
      const { counts } = await sandbox.requests();
      return counts['GET /v1/clients/{clientId}/transactions/{transactionId}'] ?? 0;
    };
    const before = await reads();
    await stepped.pass(FIRST_POLLS);
    for (const { ended } of subscribers) expect(await ended).toBeUndefined();
    for (const { results } of subscribers) {
      expect(results.map(({ data }) => data.cepStatus.cep.status)).toEqual(['PENDING', 'COMPLETED']);
    }
    expect((await reads()) - before).toBe(1);
  });
});
