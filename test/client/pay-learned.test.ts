import { expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { memoryIntents, pay, typed } from '../../packages/client/src/index.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';

type Result = { readonly __typename: string; readonly transaction?: { readonly id: string } };
const VERIFY = typed<
  { readonly createPennyValidation: Result },
  { readonly input: { readonly idempotencyKey: string } & Readonly<Record<string, string>> }
>(`mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) {
  __typename
  ... on CreatePennyValidationSuccess { transaction { id } }
  ... on UserError { code message }
  ... on OutcomeUnknown { reason message safeToRetry retryUntil }
} }`);

it('a verification whose answer was lost is told as done once the gateway has found it, and is made once', async () => {
  const gateway = await startGateway({ webhooks: ['CEP', 'MONEY_IN', 'STATUS_UPDATE'], config: PATIENT });
  try {
    const { sandbox } = gateway;
    const world = await control(sandbox, 'GET', '/sandbox');
    const sent = async (): Promise<number> =>
      (await control(sandbox, 'GET', '/sandbox/requests')).counts['POST /v1/transactions/penny_validation'];
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'POST', path: '/v1/transactions/penny_validation' },
      fault: 'reset-after-commit',
      times: 1,
    });
    const source = createFetch({ url: gateway.graphql, token: () => sandbox.accessToken });
    const store = memoryIntents();
    const input = {
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.clabeInstrumentIds[0],
    };
    const press = () => pay(source, VERIFY, input, { store });
    expect(await press()).toMatchObject({ status: 'unknown', safeToRetry: false, reason: 'NO_ANSWER' });
    // The receipt comes, whose event names the transaction.
    await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 600 });
    await expect.poll(async () => (await press()).status).toBe('done');
    expect(await press()).toMatchObject({
      status: 'done',
      result: { transaction: { id: expect.any(String) } },
    });
    expect(await sent()).toBe(1);
  } finally {
    await gateway.stop();
  }
});
