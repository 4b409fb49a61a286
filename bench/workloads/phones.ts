import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { gatewayProgram, temporaryFolder } from '../lib/contenders.ts';
import { credentials, customerCredential, SERVICE } from '../lib/credentials.ts';
import { transaction } from '../lib/documents.ts';
import { COLLECTOR } from '../lib/memory.ts';
import { costOf, type EventCost, haveAll, openPhones, type Phone, post } from '../lib/phones.ts';
import { type RunningServer, type ServerProgram, startServer } from '../lib/process.ts';
import { number, type Section, times } from '../lib/section.ts';
import { type Subscriber, subscribe } from '../lib/sockets.ts';
import { percentile } from '../lib/stats.ts';
import { programFile, type Stub, startStub } from '../lib/stub.ts';
import { until } from '../lib/until.ts';
import { CEP_STATUS, cep, cepPath, MONEY_IN, moneyIn, moneyInPath } from '../lib/webhooks.ts';
import { CLIENT_ID, uuid } from '../upstream/data.ts';

const KIB = 1_024;
const FEW = 500;
const MANY = 8_000;
const CALLERS = 4_000;
/** Events of each kind; CPU time is counted in hundredths of a second. */
const EVENTS = 300;

const own = (name: string, file: string, ...args: readonly string[]): ServerProgram => ({
  name,
  args: [...COLLECTOR, programFile(file), ...args],
});

/** Starts the gateway, or another server, for as long as `work` takes. */
async function within<T>(program: ServerProgram, work: (server: RunningServer) => Promise<T>): Promise<T> {
  await using server = await startServer(program);
  return await work(server);
}

async function withGateway<T>(
  stub: Stub,
  env: Readonly<Record<string, string>>,
  work: (server: RunningServer) => Promise<T>,
): Promise<T> {
  await using folder = await temporaryFolder();
  const program = { upstreamUrl: stub.url, dataDir: folder.path, nodeOptions: COLLECTOR, env };
  return await within(gatewayProgram(program), work);
}

interface Found {
  readonly bytesEach: number;
  readonly none: EventCost | undefined;
  readonly one: EventCost;
}

const p95 = (values: readonly number[]): number => percentile(values, 0.95);

/** The phone that an event is for: spread over all of them. */
const target = (event: number, count: number): number => (event * 7_919) % count;

const transactionOf = (phone: number): string => uuid('receipt', phone);

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

/** W9: phones that wait for a receipt each. */
export async function w9(): Promise<Section> {
  await using stub = await startStub();
  const few = await withGateway(stub, {}, (server) => receipts(server, FEW, undefined));
  const many = await withGateway(stub, {}, (server) => receipts(server, MANY, undefined));
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
    method: `\`cepStatus\`, each phone with a token and a transaction of its own; ${EVENTS} events of each kind, one by one. graphql-ws reads each transaction too, and then waits for messages by its id.`,
    columns: [
      'server',
      'phones',
      'KiB / phone',
      'CPU ms, event of none',
      'CPU ms, event of one',
      'POST to phone, p95 ms',
    ],
    rows: [row('Pasarela', FEW, few), row('Pasarela', MANY, many), row('graphql-ws', MANY, stock)],
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

const cpu = (cost: EventCost | undefined): number => cost?.cpuMs ?? Number.NaN;

/** A server does not say when a subscription has begun: events are sent until one has reached everybody. */
const reached =
  (emit: () => Promise<void>) =>
  async (subscribers: readonly Subscriber[]): Promise<void> => {
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const had = subscribers.map(({ received }) => received);
      await emit();
      const all = () => subscribers.every(({ received }, index) => received > (had[index] ?? 0));
      if (
        await until(all, 5_000).then(
          () => true,
          () => false,
        )
      )
        return;
    }
    throw new Error('An event did not reach every phone.');
  };

interface ToAll {
  readonly name: string;
  readonly count: number;
  readonly bytesEach: number;
  readonly wallMs: number;
  readonly cpuMs: number;
}

const TO_ALL = 20;

/** One event for every phone, some times over. */
async function toAll(
  server: RunningServer,
  count: number,
  emit: (payload: string) => { readonly path: string; readonly body: string },
  payload: string,
): Promise<ToAll & { readonly payload: string }> {
  const tokens = credentials(count + MANY);
  const send = () => {
    const { path, body } = emit(payload);
    return post(server, path, body);
  };
  const phone = (index: number): Phone => ({ authorization: tokens[index] ?? '', query: MONEY_IN });
  const phones = await openPhones(server, count, phone, reached(send));
  const wallMs: number[] = [];
  const cpuBefore = server.cpuMs();
  for (let event = 0; event < TO_ALL; event += 1) {
    const had = phones.subscribers.map(({ received }) => received);
    const posted = performance.now();
    const answered = send();
    await until(
      () => phones.subscribers.every(({ received }, index) => received > (had[index] ?? 0)),
      30_000,
      'an event for all phones',
    );
    wallMs.push(performance.now() - posted);
    await answered;
  }
  const cpuMs = (server.cpuMs() - cpuBefore) / TO_ALL;
  phones.close();
  return {
    name: server.name,
    count,
    bytesEach: phones.bytesEach,
    wallMs: percentile(wallMs, 0.5),
    cpuMs,
    payload: phones.last(),
  };
}

/** W10: phones with a token each that all hear of each credit. */
export async function w10(): Promise<Section> {
  await using stub = await startStub();
  const found: ToAll[] = [];
  for (const count of [CALLERS, 10_000]) {
    const gateway = await withGateway(stub, {}, (server) =>
      toAll(server, count, () => ({ path: moneyInPath(CLIENT_ID), body: moneyIn(CLIENT_ID).body }), ''),
    );
    const raw = await within(own('raw ws', 'servers/raw-ws.ts'), (server) =>
      toAll(server, count, (body) => ({ path: '/emit', body }), gateway.payload),
    );
    const stock = await within(own('graphql-ws', 'servers/graphql-ws.ts', stub.url), (server) =>
      toAll(server, count, (body) => ({ path: '/emit', body }), gateway.payload),
    );
    found.push(gateway, raw, stock);
  }
  const rawOf = ({ count }: ToAll): ToAll | undefined =>
    found.find((other) => other.name === 'raw ws' && other.count === count);
  const ratio = (one: ToAll): number => one.cpuMs / (rawOf(one)?.cpuMs ?? Number.NaN);
  return {
    title: 'W10, a credit for every phone',
    method: `\`moneyIn\` of one merchant, each phone with a token of its own; ${TO_ALL} events one by one. All servers send the same bytes.`,
    columns: ['server', 'phones', 'KiB / phone', 'one event to all, ms', 'CPU ms / event', '× raw ws'],
    rows: found.map((one) => [
      one.name,
      number(one.count),
      number(one.bytesEach / KIB),
      number(one.wallMs),
      number(one.cpuMs),
      times(ratio(one)),
    ]),
    goals: found
      .filter(({ name }) => name === 'Pasarela')
      .flatMap((one) => [
        {
          work: 'W10',
          what: `one event to ${number(one.count)} tokens, CPU × raw ws`,
          limit: 1.5,
          reached: ratio(one),
          unit: '',
        },
        {
          work: 'W10',
          what: `memory a phone, ${number(one.count)} tokens`,
          limit: 12,
          reached: one.bytesEach / KIB,
          unit: ' KiB',
        },
      ]),
    bars: {
      title: 'W10: CPU ms for one event to 10,000 phones with a token each',
      bars: found
        .filter(({ count }) => count === 10_000)
        .map(({ name, cpuMs }) => ({ label: name, value: cpuMs })),
    },
  };
}

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
  const found = [];
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

const LATENCY_MS = 50;
/** Over so long phones come back, in milliseconds: clients wait for a random time before they connect again. */
const COME_BACK_MS = 8_000;
const ALONE = 100;

/** W12: phones that come back to a gateway that has just started, while somebody else asks for something. */
export async function w12(): Promise<Section> {
  await using stub = await startStub();
  await stub.configure({ latencyMs: LATENCY_MS });
  const [other = '', ...tokens] = credentials(MANY + 1);
  const alone = await withGateway(stub, {}, async (server) => {
    const first = await asking(server, other, () => false, ALONE);
    return p95([...first, ...(await asking(server, other, () => false, ALONE))].slice(-ALONE));
  });
  const found = await withGateway(stub, {}, async (server) => {
    let back = 0;
    const firstAnswerMs: number[] = [];
    const started = performance.now();
    const cpuBefore = server.cpuMs();
    const meanwhile = asking(server, other, () => back < MANY, 0);
    const phones = await Promise.all(
      tokens.map(async (authorization, index) => {
        await pause((index / MANY) * COME_BACK_MS);
        const connecting = performance.now();
        const variables = { id: transactionOf(index) };
        const onNext = () => {
          back += 1;
          firstAnswerMs.push(performance.now() - connecting);
        };
        return subscribe({ url: server.url, authorization, query: CEP_STATUS, variables, onNext });
      }),
    );
    await until(() => back >= MANY, 60_000, 'an answer for each phone');
    const wallMs = performance.now() - started;
    const others = await meanwhile;
    for (const phone of phones) phone.close();
    return { wallMs, firstAnswerMs, others, cpuEachMs: (server.cpuMs() - cpuBefore) / MANY };
  });
  const work = 'W12';
  const [p99, othersP95] = [percentile(found.firstAnswerMs, 0.99), p95(found.others)];
  return {
    title: 'W12, phones that come back',
    method: `${number(MANY)} phones, each with a token and a receipt of its own, connect within ${COME_BACK_MS / 1_000} s to a gateway that has just started, in front of an upstream with ${LATENCY_MS} ms of latency. Meanwhile another caller asks for one transaction after another.`,
    columns: [
      'all have an answer after, s',
      'first answer, p50 ms',
      'p99 ms',
      'CPU ms / phone',
      'another caller, p95 ms',
      'the same alone, ms',
    ],
    rows: [
      [
        number(found.wallMs / 1_000),
        number(percentile(found.firstAnswerMs, 0.5)),
        number(p99),
        number(found.cpuEachMs),
        number(othersP95),
        number(alone),
      ],
    ],
    goals: [
      {
        work,
        what: `${number(MANY)} phones have an answer`,
        limit: 10,
        reached: found.wallMs / 1_000,
        unit: ' s',
      },
      { work, what: 'another caller meanwhile, p95 × alone', limit: 2, reached: othersP95 / alone, unit: '' },
    ],
  };
}

/** One caller asks for one thing after another, for as long as it should, and so often at least; milliseconds each. */
async function asking(
  server: RunningServer,
  authorization: string,
  goesOn: () => boolean,
  atLeast: number,
): Promise<number[]> {
  const { query, variables } = transaction;
  const taken: number[] = [];
  while (goesOn() || taken.length < atLeast) {
    const asked = performance.now();
    const { statusCode, body } = await request(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(`A query was answered with ${statusCode}.`);
    taken.push(performance.now() - asked);
  }
  return taken;
}
