import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { documentOf, inject, MUTATIONS, movementsOf, payable, requestsOf } from './payments.ts';

/** Longer than an answer takes on a slow machine. */
const UPSTREAM_TIMEOUT_MS = 1_500;
const OPERATION_TIMEOUT_MS = 6_000;

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamTimeoutMs: UPSTREAM_TIMEOUT_MS,
      operationTimeoutMs: OPERATION_TIMEOUT_MS,
      upstreamReport: true,
    },
  });
});
afterAll(() => gateway.stop());
beforeEach(async () => {
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
  // The gateway knows who is calling.
  await gateway.query('{ client { id } }');
  await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
});

/** What the gateway itself says about its calls, by extensions.upstream. */
function waited({ extensions }: Awaited<ReturnType<RunningGateway['query']>>): number {
  // The plugin upstream-report makes it of this form.
  const calls = (extensions?.['upstream'] ?? []) as readonly { milliseconds: number }[];
  return calls.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
}

describe('an upstream that hangs', () => {
  it('costs a read one call, and the answer says what it waited for', async () => {
    await inject(gateway.sandbox, { method: 'GET' }, 'hang');
    const { errors } = await gateway.query('{ client { accounts { totalCount } } }');
    expect(errors?.[0]).toMatchObject({
      message: `The service did not answer within ${UPSTREAM_TIMEOUT_MS} ms.`,
      extensions: { code: 'UPSTREAM_TIMEOUT' },
    });
    expect(await requestsOf(gateway.sandbox, 'GET /v1/clients/{clientId}/accounts')).toBe(1);
  });

  it('costs money out as many repeats as fit into the operation, and the outcome is unknown', async () => {
    const { sandbox } = gateway;
    const payment = await payable(sandbox, 'createMoneyOut', 'hanging');
    await inject(sandbox, { method: 'POST', path: payment.path }, 'hang');
    const answer = await gateway.query(documentOf('createMoneyOut'), { input: payment.input });
    expect(answer.data.result).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: true });
    const sent = await requestsOf(sandbox, payment.route);
    expect(sent).toBeGreaterThan(1);
    expect(sent).toBeLessThanOrEqual(OPERATION_TIMEOUT_MS / UPSTREAM_TIMEOUT_MS);
    expect(waited(answer)).toBeLessThanOrEqual(OPERATION_TIMEOUT_MS);
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });

  it.each(MUTATIONS.filter((mutation) => mutation !== 'createMoneyOut'))(
    'costs %s its one call, and the outcome is unknown',
    async (mutation) => {
      const { sandbox } = gateway;
      const payment = await payable(sandbox, mutation, `hanging ${mutation}`);
      await inject(sandbox, { method: 'POST', path: payment.path }, 'hang');
      const { data } = await gateway.query(documentOf(mutation), { input: payment.input });
      expect(data.result).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: false });
      expect(await requestsOf(sandbox, payment.route)).toBe(1);
    },
  );

  it('keeps a refund from being sent when it is the original that cannot be read', async () => {
    const { sandbox } = gateway;
    const payment = await payable(sandbox, 'refundTransaction', 'original hangs');
    await inject(sandbox, { method: 'GET' }, 'hang');
    const { data, errors } = await gateway.query(documentOf('refundTransaction'), { input: payment.input });
    expect(data.result).toBeNull();
    expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_TIMEOUT');
    expect(await requestsOf(sandbox, payment.route)).toBe(0);
  });

  it('leaves what is read of a payment after its repeats the rest of the same time, not a new one', async () => {
    const { sandbox } = gateway;
    const payment = await payable(sandbox, 'createMoneyOut', 'late relations');
    await inject(sandbox, { method: 'POST', path: payment.path }, 'hang', 1);
    await inject(sandbox, { method: 'GET' }, 'hang');
    const document = documentOf(
      'createMoneyOut',
      'id bank { id } client { accounts { totalCount } customers { totalCount } webhooks { totalCount } }',
    );
    const answer = await gateway.query(document, { input: payment.input });
    const [movement] = await movementsOf(sandbox, payment.tag);
    expect(answer.data.result.moved).toMatchObject({ id: movement?.transactionId, bank: null });
    for (const { extensions } of answer.errors ?? []) expect(extensions['code']).toBe('UPSTREAM_TIMEOUT');
  });
});

describe('an operation with less time than one call may take', () => {
  it('bounds the call itself', async () => {
    await using hurried = await startGateway({
      webhooks: false,
      config: { upstreamTimeoutMs: 60_000, operationTimeoutMs: OPERATION_TIMEOUT_MS },
    });
    const { sandbox } = hurried;
    await hurried.query('{ client { id } }');
    const payment = await payable(sandbox, 'createInternalTransaction', 'hurried');
    await inject(sandbox, {}, 'hang');
    const { errors } = await hurried.query('{ client { accounts { totalCount } } }');
    expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_TIMEOUT');
    // The message names the time that the call was given: what was left of the operation's.
    const [, given] = /this call had ([\d.]+) ms/.exec(errors?.[0]?.message ?? '') ?? [];
    expect(Number(given)).toBeLessThanOrEqual(OPERATION_TIMEOUT_MS);
    const paid = await hurried.query(documentOf('createInternalTransaction'), { input: payment.input });
    expect(paid.data.result).toMatchObject({ __typename: 'OutcomeUnknown' });
  });
});
