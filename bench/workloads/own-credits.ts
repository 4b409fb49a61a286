import { randomUUID } from 'node:crypto';
import { credentials, customerCredential, SERVICE } from '../lib/credentials.ts';
import {
  CALLERS,
  cpu,
  EVENTS,
  FEW,
  type Found,
  KIB,
  MANY,
  p95,
  target,
  withGateway,
} from '../lib/measured.ts';
import { costOf, openPhones, type Phone, post } from '../lib/phones.ts';
import type { RunningServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import type { Subscriber } from '../lib/sockets.ts';
import { startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { MONEY_IN, moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { CLIENT_ID, uuid } from '../upstream/data.ts';

const customerOf = (caller: number): string => uuid('phone customer', caller);

const MONEY_IN_OF = MONEY_IN.replace('subscription MoneyIn', 'subscription MoneyIn($owner: ID!)').replace(
  'moneyIn {',
  'moneyIn(ownerId: $owner) {',
);
const EVENTS_OF =
  'subscription Events { events { id cursor receivedAt ... on MoneyInEvent { amount { amount currency } } } }';

/** W11: callers who hear of their own credits alone. */
export async function w11(): Promise<Section> {
  await using stub = await startStub();
  const tokens = credentials(CALLERS + MANY);
  const narrowed = (query: string) => ({
    env: SERVICE,
    phone: (index: number): Phone => ({ authorization: customerCredential(customerOf(index)), query }),
  });
  const kinds = [
    { name: '`moneyIn`, narrowed to a customer', ...narrowed(MONEY_IN) },
    { name: '`events`, narrowed to a customer', ...narrowed(EVENTS_OF) },
    {
      name: '`moneyIn(ownerId)`, a token each',
      env: {},
      phone: (index: number): Phone => ({
        authorization: tokens[index] ?? '',
        query: MONEY_IN_OF,
        variables: { owner: customerOf(index) },
      }),
    },
  ];
  const found: ({ readonly name: string; readonly count: number } & Awaited<
    ReturnType<typeof ownCredits>
  >)[] = [];
  for (const { name, env, phone } of kinds) {
    for (const count of [FEW, CALLERS]) {
      found.push({
        name,
        count,
        ...(await withGateway(stub, env, (server) => ownCredits(server, count, phone))),
      });
    }
  }
  return {
    title: 'W11, callers who hear of their own credits alone',
    method: `Each caller has a token of its own and waits for the credits of a customer of its own; ${EVENTS} events of each kind, one by one.`,
    columns: [
      'subscription',
      'callers',
      'KiB / caller',
      'CPU ms, event of none',
      'CPU ms, event of one',
      'POST to caller, p95 ms',
    ],
    rows: found.map((one) => [
      one.name,
      number(one.count),
      number(one.bytesEach / KIB),
      number(cpu(one.none)),
      number(one.one.cpuMs),
      number(p95(one.one.arrivalMs)),
    ]),
    goals: found
      .filter(({ count }) => count === CALLERS)
      .flatMap((many) => {
        const few = found.find(({ name, count }) => name === many.name && count === FEW);
        const work = 'W11';
        const { name } = many;
        return [
          { work, what: `${name}: CPU for an event of none`, limit: 1, reached: cpu(many.none), unit: ' ms' },
          {
            work,
            what: `the same, × ${FEW} callers`,
            limit: 1.3,
            reached: cpu(many.none) / cpu(few?.none),
            unit: '',
          },
          {
            work,
            what: `${name}: CPU for an event of one`,
            limit: 1.5,
            reached: many.one.cpuMs,
            unit: ' ms',
          },
          {
            work,
            what: `${name}: POST to caller, p95`,
            limit: 10,
            reached: p95(many.one.arrivalMs),
            unit: ' ms',
          },
        ];
      }),
  };
}

async function ownCredits(
  server: RunningServer,
  count: number,
  phone: (index: number) => Phone,
): Promise<Found> {
  const path = moneyInPath(CLIENT_ID);
  const credit = (to: number) => ({ path, body: moneyIn(customerOf(to)).body, to });
  // Nothing says when a subscription has begun but its first event.
  const ready = async (subscribers: readonly Subscriber[]) => {
    const offset = subscribers.length === count ? 0 : count;
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const missing = subscribers.flatMap(({ received }, index) => (received === 0 ? [index] : []));
      for (const index of missing) await post(server, path, credit(offset + index).body);
      const all = () => subscribers.every(({ received }) => received > 0);
      if (
        await until(all, 3_000).then(
          () => true,
          () => false,
        )
      )
        return;
    }
    throw new Error('A caller did not hear of its credit.');
  };
  const phones = await openPhones(server, count, phone, ready);
  const none = () =>
    costOf(server, phones, EVENTS, () => ({ path, body: moneyIn(randomUUID()).body, to: undefined }));
  await none();
  const found = {
    bytesEach: phones.bytesEach,
    none: await none(),
    one: await costOf(server, phones, EVENTS, (event) => credit(target(event, count))),
  };
  phones.close();
  return found;
}
