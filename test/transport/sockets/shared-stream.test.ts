import { afterAll, beforeAll, expect, it } from 'vitest';
import { readMetric } from '../../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { type Subscriber, subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';

const SOCKETS = 20;
const MONEY_IN = `subscription ($after: Cursor) {
  moneyIn(after: $after) { id cursor transaction { id } }
}`;

let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what the sandbox says of itself.
let seeded: any;
beforeAll(async () => {
  gateway = await startGateway();
  seeded = await control(gateway.sandbox, 'GET', '/sandbox');
});
afterAll(() => gateway.stop());

const credit = () =>
  control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
    clabe: seeded.accounts[0].clabe,
    amount: '10.00',
    payerName: 'Ana Torres',
    concept: 'Factura',
  });

const subscribe = (after?: string): Subscriber =>
  subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
    query: MONEY_IN,
    variables: { after },
  });

const cursors = ({ results }: Subscriber): string[] => results.map(({ data }) => data.moneyIn.cursor);

it('an event is executed once for all sockets that ask the same, new ones and resumed ones', async () => {
  const { data } = await gateway.query('{ eventCursor }');
  const begun = Array.from({ length: SOCKETS }, () => subscribe());
  const resumed = Array.from({ length: SOCKETS }, () => subscribe(data.eventCursor));
  const all = [...begun, ...resumed];
  await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === all.length);
  await credit();
  await until(() => all.every(({ results }) => results.length === 1));

  await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  await credit();
  await until(() => all.every(({ results }) => results.length === 2));
  const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
  expect(counts['GET /v1/clients/{clientId}/transactions/{transactionId}']).toBe(1);

  const [first] = begun;
  for (const subscriber of all) expect(cursors(subscriber)).toEqual(first && cursors(first));
  expect(await readMetric(gateway.url, 'pasarela_events_delivered_total')).toBe(2 * all.length);
  expect(await readMetric(gateway.url, 'pasarela_events_subscribers')).toBe(all.length);
  await Promise.all(all.map((subscriber) => subscriber.leave()));
  await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === 0);
});
