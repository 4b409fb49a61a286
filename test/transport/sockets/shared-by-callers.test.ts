import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { type Subscriber, subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

const PHONES = 20;
const CUSTOMERS = 3;
const MONEY_IN = 'subscription { moneyIn { id cursor ownerId amount { amount } } }';
const READING = 'subscription { moneyIn { id ownerId transaction { id } } }';

let sandbox: Sandbox;
let gateway: RunningGateway;
let accounts: readonly { clabe: string; ownerId: string }[];
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  ({ accounts } = await control(sandbox, 'GET', '/sandbox'));
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const subscribe = (token: string, query: string): Subscriber =>
  subscribeOverWebSocket(gateway.graphql, token, { query });
const credit = ({ clabe }: { clabe: string }) =>
  control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '10.00' });
const subscribers = () => readMetric(gateway.url, 'pasarela_events_subscribers');
const streams = () =>
  readMetric(gateway.url, 'pasarela_operations_total', 'type="subscription",outcome="ok"');
const leave = async (all: readonly Subscriber[]) => {
  await Promise.all(all.map((subscriber) => subscriber.leave()));
  await until(async () => (await subscribers()) === 0);
};

/** Tokens that differ, of one caller or of one customer each. */
const tokens = (claims: (index: number) => Parameters<typeof callerToken>[0]) =>
  Promise.all(
    Array.from({ length: PHONES }, (_, index) =>
      callerToken({ ...claims(index), exp: Math.floor(Date.now() / 1_000) + 3_600 + index }),
    ),
  );

describe('callers with a token each', () => {
  it('share one execution where they may see the same, and what they ask for is in the event', async () => {
    const before = await streams();
    const all = (await tokens(() => ({}))).map((token) => subscribe(token, MONEY_IN));
    await until(async () => (await subscribers()) === PHONES);
    expect(await streams()).toBe(before + 1);
    const [account] = accounts;
    if (account === undefined) throw new Error('there is an account');
    await credit(account);
    await Promise.all(all.map((subscriber) => subscriber.received(1)));
    for (const { results } of all) expect(results).toEqual(all[0]?.results);
    expect(all[0]?.results[0]?.data.moneyIn.ownerId).toBe(account.ownerId);
    await leave(all);
  });

  it('do not where something is read from the REST service', async () => {
    const before = await streams();
    const all = (await tokens(() => ({}))).map((token) => subscribe(token, READING));
    await until(async () => (await subscribers()) === PHONES);
    expect(await streams()).toBe(before + PHONES);
    await leave(all);
  });

  it('do not where one has other rights', async () => {
    const before = await streams();
    const [full, fewer] = [await callerToken(), await callerToken({ scope: 'events:read' })];
    const all = [full, fewer].map((token) => subscribe(token, MONEY_IN));
    await until(async () => (await subscribers()) === 2);
    expect(await streams()).toBe(before + 2);
    const refused = subscribe(await callerToken({ scope: 'graph:read' }), MONEY_IN);
    await refused.ended;
    expect(refused.results).toMatchObject([{ errors: [{ extensions: { code: 'FORBIDDEN' } }] }]);
    await leave(all);
  });

  it('hear each of its own credits alone where narrowed to a customer', async () => {
    const owners = [...new Set(accounts.map(({ ownerId }) => ownerId))].slice(0, CUSTOMERS);
    const before = await streams();
    const all = (await tokens((index) => ({ customer_id: owners[index % owners.length] }))).map((token) =>
      subscribe(token, MONEY_IN),
    );
    await until(async () => (await subscribers()) === PHONES);
    expect(await streams()).toBe(before + owners.length);
    const own = owners.map((owner) => accounts.find(({ ownerId }) => ownerId === owner));
    for (const account of own) if (account !== undefined) await credit(account);
    await Promise.all(all.map((subscriber) => subscriber.received(1)));
    for (const [index, { results }] of all.entries()) {
      expect(results.map(({ data }) => data.moneyIn.ownerId)).toEqual([owners[index % owners.length]]);
    }
    await leave(all);
  });

  it('are closed one by one as their tokens end, and the others go on', async () => {
    const soon = await callerToken({ exp: Date.now() / 1_000 + 2 });
    const before = await streams();
    const ending = subscribe(soon, MONEY_IN);
    let hasEnded = false;
    const ended = ending.ended.finally(() => {
      hasEnded = true;
    });
    // The one whose token ends begins what both share, unless the process stood still until that end.
    await until(async () => hasEnded || (await streams()) > before);
    const lasting = subscribe(await callerToken(), MONEY_IN);
    expect(await ended).toMatchObject({ code: 4403 });
    // Where the process stood still, it has ended before the other has begun.
    await until(async () => (await subscribers()) === 1);
    const [account] = accounts;
    if (account === undefined) throw new Error('there is an account');
    await credit(account);
    await lasting.received(1);
    expect(ending.results).toEqual([]);
    expect(lasting.results).toEqual([
      { data: { moneyIn: expect.objectContaining({ ownerId: account.ownerId }) } },
    ]);
    await leave([lasting]);
  });
});
