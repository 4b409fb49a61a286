import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { holdTime } from '../../helpers/held-time.ts';
import { newToken } from '../../helpers/new-token.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, inject, type Payable, payable, requestsOf } from './payments.ts';

const READ = '{ client { webhooks { totalCount } } }';
/** So many failures in a row suspend calls, and so many callers have to have them for the calls of all to be suspended. */
const FAILURES = 20;
const CALLERS = 4;

let sandbox: Sandbox;
let gateway: RunningGateway;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices: { newTokenEndsOlder: true } });
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: {
      service: serviceFor(sandbox),
      // Payments hang for as long as a slow machine takes to renew a token and to read.
      operationTimeoutMs: 25_000,
      upstreamTimeoutMs: 30_000,
      listsMaxAgeMs: 0,
    },
  });
});
afterEach(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const bearer = async (claims: Parameters<typeof callerToken>[0]) => ({
  authorization: `Bearer ${await callerToken(claims)}`,
});
const subject = (index: number) => bearer({ sub: `subject ${index % CALLERS}` });
const pay = ({ mutation, input }: Payable, headers: Record<string, string>): Promise<GraphQLAnswer> =>
  gateway.query(documentOf(mutation), { input }, headers);
const read = async () => gateway.query(READ, {}, await subject(0));
const validations = (name: string, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      payable(sandbox, 'createPennyValidation', `${name} ${index}`),
    ),
  );

/** The service takes the gateway's token no longer, as it has given another one elsewhere. */
const endToken = () => newToken(sandbox);

describe("the gateway's own token is renewed, and callers read on,", () => {
  it('while payments of several callers fail', async () => {
    expect((await read()).errors).toBeUndefined();
    const payments = await validations('fails', FAILURES + CALLERS);
    await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, { status: 503 });
    const failed = await Promise.all(payments.map(async (one, index) => pay(one, await subject(index))));
    // The last of them may start when so many have failed that no more calls are made.
    const unknown = failed.filter(({ data }) => data.result?.__typename === 'OutcomeUnknown');
    const suspended = failed.filter(({ errors }) => errors?.[0]?.message.includes('suspended'));
    expect(unknown.length).toBeGreaterThanOrEqual(FAILURES);
    expect(unknown.length + suspended.length).toBe(payments.length);
    await endToken();
    expect((await read()).errors).toBeUndefined();
  });

  it('while payments of several callers hang', async () => {
    expect((await read()).errors).toBeUndefined();
    // As many as may be under way.
    const payments = await validations('hangs', 32);
    await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, 'hang');
    let ended = 0;
    const hanging = payments.map(async (one, index) => {
      const answer = await pay(one, await subject(index));
      ended += 1;
      return answer;
    });
    await until(async () => (await requestsOf(sandbox, payments[0]?.route ?? '')) === payments.length);
    await endToken();
    expect((await read()).errors).toBeUndefined();
    expect(ended).toBe(0);
    for (const { data } of await Promise.all(hanging)) expect(data.result.__typename).toBe('OutcomeUnknown');
  });
});

describe('what a payment has to read first', () => {
  it('does not hide, by its answers, that payments fail', async () => {
    await inject(sandbox, { method: 'POST', path: '/v1/clients/*/transactions/*/refund' }, { status: 503 });
    const refunds: Payable[] = [];
    for (let index = 0; index <= FAILURES; index += 1)
      refunds.push(await payable(sandbox, 'refundTransaction', `refund ${index}`));
    const headers = await subject(0);
    // One call every two seconds may try whether the service is back.
    const goOn = holdTime();
    const failing = await Promise.all(refunds.slice(1).map((refund) => pay(refund, headers)));
    for (const { data } of failing) expect(data.result.__typename).toBe('OutcomeUnknown');
    const [next] = refunds;
    if (next === undefined) throw new Error('there are more than twenty');
    const { errors } = await pay(next, headers);
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('suspended'),
      extensions: { code: 'UPSTREAM_UNAVAILABLE' },
    });
    goOn();
    await control(sandbox, 'DELETE', '/sandbox/faults');
    const paid = await until(async () => (await pay(next, headers)).data.result ?? undefined);
    expect(paid).toMatchObject({ __typename: 'RefundTransactionSuccess', replayed: false });
  });

  it('suspends, where it fails, no payment that reads nothing', async () => {
    const { customerIds } = await control(sandbox, 'GET', '/sandbox');
    const payments = await validations('narrowed', FAILURES + CALLERS);
    const whole = await validations('whole', 3);
    expect((await read()).errors).toBeUndefined();
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments*' }, { status: 503 });
    const failed = await Promise.all(
      payments.map(async (one, index) =>
        pay(
          one,
          await bearer({ sub: `customer ${index}`, customer_id: customerIds[index % customerIds.length] }),
        ),
      ),
    );
    for (const { errors } of failed) expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_UNAVAILABLE');
    for (const one of whole) {
      expect((await pay(one, await subject(0))).data.result).toMatchObject({ replayed: false });
    }
  });
});
