import { afterAll, beforeAll, expect, it } from 'vitest';
import { creditTo, type Fleet, headOf, type Member, startFleet, startProvider } from '../helpers/fleet.ts';
import { control } from '../helpers/gateway.ts';
import { randomFrom } from '../helpers/random.ts';
import { type Reader, startReaders } from '../helpers/reader.ts';
import { callerToken, serviceEnvironment } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

/** Callers of the whole client, and of each customer; each has a token of its own. */
const WHOLE = 20;
const OF_EACH = 8;

/** Whoever comes to a gateway that has not found Redis again yet is told so, and comes again. */
const isNotAnOutage = (code: string): boolean => code !== 'STORE_UNAVAILABLE';

let fleet: Fleet;
let doomed: Member;
let steady: Member;
let current: Member;
let customers: readonly string[];
let whole: readonly Reader[];
let narrowed: readonly { readonly customer: string; readonly readers: readonly Reader[] }[];
beforeAll(async () => {
  fleet = await startFleet();
  const environment = serviceEnvironment(fleet.sandbox);
  [doomed, steady] = await Promise.all([fleet.start(environment), fleet.start(environment)]);
  current = doomed;
  const { customerIds } = await control(fleet.sandbox, 'GET', '/sandbox');
  customers = customerIds;
  const start = async (count: number, customer_id: string | undefined) => {
    const tokens = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        callerToken({ sub: `caller ${index}`, ...(customer_id === undefined ? {} : { customer_id }) }),
      ),
    );
    const after = await headOf(steady, tokens[0]);
    const random = randomFrom(3);
    return startReaders(count, (index) => ({
      graphql: () => current.graphql,
      token: tokens[index] ?? '',
      after,
      random,
    }));
  };
  whole = await start(WHOLE, undefined);
  narrowed = await Promise.all(
    customers.map(async (customer) => ({ customer, readers: await start(OF_EACH, customer) })),
  );
  const all = WHOLE + customers.length * OF_EACH;
  await until(async () => (await doomed.metric('pasarela_events_subscribers')) === all);
});
afterAll(() => fleet[Symbol.asyncDispose]());

it('callers with a token each lose nothing, get nothing twice, and nothing of others, whatever ends', async () => {
  const owners = new Map<string, string>();
  let sent = 0;
  const provider = startProvider(
    () => current,
    4,
    10,
    (id) => {
      // One in five is to nobody who is there.
      const owner = customers[sent % (customers.length + 1)] ?? '00000000-0000-4000-8000-000000000000';
      sent += 1;
      owners.set(id, owner);
      return creditTo(owner, id);
    },
  );
  const wholeHas = (count: number) => until(() => whole.every(({ seen }) => seen.length >= count));

  await wholeHas(20);
  await fleet.redis.kill();
  const away = provider.answered.length;
  await until(() => provider.answered.length >= away + 40);
  await fleet.redis.start();
  await wholeHas(provider.answered.length + 20);

  fleet.redis.freeze();
  const frozen = provider.answered.length;
  await until(() => provider.answered.length >= frozen + 20);
  fleet.redis.thaw();
  await wholeHas(provider.answered.length + 20);

  await doomed.program.end('SIGKILL');
  current = steady;
  await wholeHas(provider.answered.length + 20);
  await provider.stop();
  // What a gateway had spooled when it was killed, another one drains.
  await wholeHas(provider.answered.length);

  const order = whole[0]?.seen ?? [];
  expect(new Set(order)).toEqual(new Set(provider.answered));
  for (const { seen, told } of whole) {
    expect(seen).toEqual(order);
    expect(told.filter(isNotAnOutage)).toEqual([]);
  }
  for (const { customer, readers } of narrowed) {
    const own = order.filter((id) => owners.get(id) === customer);
    expect(own.length).toBeGreaterThan(0);
    await until(() => readers.every(({ seen }) => seen.length >= own.length));
    for (const { seen, told } of readers) {
      expect(seen).toEqual(own);
      expect(told.filter(isNotAnOutage)).toEqual([]);
    }
  }
  await Promise.all(
    [...whole, ...narrowed.flatMap(({ readers }) => readers)].map((reader) => reader.leave()),
  );
  await until(async () => (await steady.metric('pasarela_events_subscribers')) === 0);
});
