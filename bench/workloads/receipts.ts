import { randomUUID } from 'node:crypto';
import { credentials } from '../lib/credentials.ts';
import {
  cpu,
  EVENTS,
  FEW,
  type Found,
  KIB,
  MANY,
  own,
  p95,
  target,
  transactionOf,
  withGateway,
  within,
} from '../lib/measured.ts';
import { costOf, haveAll, openPhones, type Phone } from '../lib/phones.ts';
import type { RunningServer } from '../lib/process.ts';
import { number, type Section } from '../lib/section.ts';
import { startStub } from '../lib/stub.ts';
import {
  CEP_STATUS,
  cep,
  cepPath,
  statusUpdate,
  statusUpdatePath,
  TRANSACTION_STATUS,
} from '../lib/webhooks.ts';
import { CLIENT_ID } from '../upstream/data.ts';

/** Phones with a token and a receipt of their own each. */
async function receipts(server: RunningServer, count: number, emitPath: string | undefined): Promise<Found> {
  const tokens = credentials(count + MANY);
  const phone = (index: number): Phone => ({
    authorization: tokens[index] ?? '',
    query: CEP_STATUS,
    variables: { id: transactionOf(index) },
  });
  const phones = await openPhones(server, count, phone, (subscribers) => haveAll(subscribers, 1));
  const told = (id: string) => ({
    path: emitPath ?? cepPath(CLIENT_ID),
    body:
      emitPath === undefined
        ? cep(CLIENT_ID, id)
        : JSON.stringify({
            data: {
              cepStatus: { kind: 'CHANGE', transactionId: id, cep: { status: 'DELAYED', final: false } },
            },
          }),
  });
  const none = () => costOf(server, phones, EVENTS, () => ({ ...told(randomUUID()), to: undefined }));
  await none();
  const found = {
    bytesEach: phones.bytesEach,
    none: await none(),
    one: await costOf(server, phones, EVENTS, (event) => {
      const to = target(event, count);
      return { ...told(transactionOf(to)), to };
    }),
  };
  phones.close();
  return found;
}

/** Phones with a token and a payment of their own each, which they follow to its end. */
async function payments(server: RunningServer, count: number): Promise<Pick<Found, 'bytesEach' | 'none'>> {
  const tokens = credentials(count + MANY);
  const phone = (index: number): Phone => ({
    authorization: tokens[index] ?? '',
    query: TRANSACTION_STATUS,
    variables: { id: transactionOf(index) },
  });
  const phones = await openPhones(server, count, phone, (subscribers) => haveAll(subscribers, 1));
  const none = () =>
    costOf(server, phones, EVENTS, () => ({
      path: statusUpdatePath(CLIENT_ID),
      body: statusUpdate(randomUUID()),
      to: undefined,
    }));
  await none();
  const found = { bytesEach: phones.bytesEach, none: await none() };
  phones.close();
  return found;
}

/** W9: phones that wait for a receipt each, or for the end of a payment. */
export async function w9(): Promise<Section> {
  await using stub = await startStub();
  const few = await withGateway(stub, {}, (server) => receipts(server, FEW, undefined));
  const many = await withGateway(stub, {}, (server) => receipts(server, MANY, undefined));
  const followed = await withGateway(stub, {}, (server) => payments(server, MANY));
  const stock = await within(own('graphql-ws', 'servers/graphql-ws.ts', stub.url), (server) =>
    receipts(server, MANY, '/emit'),
  );
  const row = (name: string, count: number, found: Found): string[] => [
    name,
    number(count),
    number(found.bytesEach / KIB),
    number(found.none?.cpuMs ?? Number.NaN),
    number(found.one.cpuMs),
    number(p95(found.one.arrivalMs)),
  ];
  const work = 'W9';
  return {
    title: 'W9, phones that wait for a receipt',
    method: `\`cepStatus\`, each phone with a token and a transaction of its own; ${EVENTS} events of each kind, one by one; then \`transactionStatus\` in the same way, where what the readings of the schedule cost is in the figure. graphql-ws reads each transaction too, and then waits for messages by its id.`,
    columns: [
      'server',
      'phones',
      'KiB / phone',
      'CPU ms, event of none',
      'CPU ms, event of one',
      'POST to phone, p95 ms',
    ],
    rows: [
      row('Pasarela', FEW, few),
      row('Pasarela', MANY, many),
      [
        'Pasarela, `transactionStatus`',
        number(MANY),
        number(followed.bytesEach / KIB),
        number(cpu(followed.none)),
        '',
        '',
      ],
      row('graphql-ws', MANY, stock),
    ],
    goals: [
      {
        work,
        what: `CPU for an event of none, ${number(MANY)} phones`,
        limit: 1,
        reached: cpu(many.none),
        unit: ' ms',
      },
      {
        work,
        what: `the same, × ${FEW} phones`,
        limit: 1.3,
        reached: cpu(many.none) / cpu(few.none),
        unit: '',
      },
      {
        work,
        what: `CPU for an event of none, ${number(MANY)} phones on \`transactionStatus\``,
        limit: 1,
        reached: cpu(followed.none),
        unit: ' ms',
      },
      { work, what: 'CPU for an event of one', limit: 1.5, reached: many.one.cpuMs, unit: ' ms' },
      { work, what: 'POST to phone, p95', limit: 10, reached: p95(many.one.arrivalMs), unit: ' ms' },
      { work, what: 'memory a phone', limit: 15, reached: many.bytesEach / KIB, unit: ' KiB' },
      {
        work,
        what: 'memory a phone, × graphql-ws',
        limit: 0.6,
        reached: many.bytesEach / stock.bytesEach,
        unit: '',
      },
    ],
    bars: {
      title: 'W9: CPU ms for an event that concerns no phone, one phone',
      bars: [
        { label: `Pasarela, ${FEW}: none`, value: cpu(few.none) },
        { label: `Pasarela, ${number(MANY)}: none`, value: cpu(many.none) },
        { label: `Pasarela, ${FEW}: one`, value: few.one.cpuMs },
        { label: `Pasarela, ${number(MANY)}: one`, value: many.one.cpuMs },
        { label: `graphql-ws, ${number(MANY)}: one`, value: stock.one.cpuMs },
      ],
    },
  };
}
