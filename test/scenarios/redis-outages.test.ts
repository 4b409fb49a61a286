import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, headOf, type Member, startFleet, startProvider } from '../helpers/fleet.ts';
import { control } from '../helpers/gateway.ts';
import { randomFrom } from '../helpers/random.ts';
import { type Reader, startReaders } from '../helpers/reader.ts';
import { until } from '../helpers/until.ts';

const READERS = 50;

let fleet: Fleet;
let gateway: Member;
let readers: readonly Reader[];
/** How often each had connected when all streams were open: one that is slow to say who it is may have to come again. */
let begun: readonly number[];
beforeAll(async () => {
  fleet = await startFleet();
  gateway = await fleet.start();
});
afterAll(() => fleet[Symbol.asyncDispose]());
beforeEach(async () => {
  readers = startReaders(READERS, {
    graphql: () => gateway.graphql,
    token: fleet.sandbox.accessToken,
    after: await headOf(gateway),
    random: randomFrom(2),
  });
  await until(async () => (await gateway.metric('pasarela_events_subscribers')) === READERS);
  begun = readers.map(({ connections }) => connections);
});
afterEach(async () => {
  await Promise.all(readers.map((reader) => reader.leave()));
  await until(async () => (await gateway.metric('pasarela_events_subscribers')) === 0);
});

/** Each reader has had each event once, all in one order, over the stream that it had at the beginning. */
function expectWhole(answered: readonly string[]): void {
  const [first] = readers;
  expect(new Set(first?.seen)).toEqual(new Set(answered));
  for (const { seen, told } of readers) {
    expect(seen).toHaveLength(answered.length);
    expect(seen).toEqual(first?.seen);
    expect(told).toEqual([]);
  }
  expect(readers.map(({ connections }) => connections)).toEqual(begun);
}

const everybodyHas = (count: number) => until(() => readers.every(({ seen }) => seen.length >= count));

it('a Redis killed three times under load costs 50 readers nothing, and no stream ends', async () => {
  const provider = startProvider(() => gateway, 4, 10);
  for (let round = 0; round < 3; round += 1) {
    await everybodyHas(provider.answered.length + 20);
    await fleet.redis.kill();
    const away = provider.answered.length;
    await until(() => provider.answered.length >= away + 40);
    await fleet.redis.start();
    // Live again: what is answered from now on reaches everybody.
    await everybodyHas(provider.answered.length + 20);
  }
  await provider.stop();
  await everybodyHas(provider.answered.length);
  expectWhole(provider.answered);
  expect(await gateway.metric('pasarela_events_spooled_total')).toBeGreaterThan(0);
  await until(async () => {
    const [spooled, drained] = [
      await gateway.metric('pasarela_events_spooled_total'),
      await gateway.metric('pasarela_events_drained_total'),
    ];
    return spooled === drained;
  });
});

it('what arrives while Redis is down is delivered in the order of its arrival', async () => {
  await fleet.redis.kill();
  const sent: string[] = [];
  for (let number = 0; number < 100; number += 1) {
    const id_msg = `down-${number}`;
    expect(await gateway.deliver('STATUS_UPDATE', { id_msg })).toBe(201);
    sent.push(id_msg);
  }
  // What was found of the stores answers for a second.
  await expect
    .poll(async () => (await fetch(`${gateway.url}/readyz`)).json())
    .toMatchObject({ status: 'degraded', degraded: ['events', 'payments'], spooled: 100 });
  expect(await gateway.metric('pasarela_spooled_events')).toBe(100);
  expect(await gateway.query('{ eventCursor }')).toMatchObject({
    errors: [{ extensions: { code: 'STORE_UNAVAILABLE', retryable: true } }],
  });
  // Nobody follows the other client yet, so that its log would have to be read.
  const [other] = (await control(fleet.sandbox, 'GET', '/sandbox')).otherClients;
  const begin = (query: string) =>
    fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${other.accessToken}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ query }),
    });
  const begun = await begin('subscription { events { id } }');
  expect([begun.status, await begun.json()]).toMatchObject([
    503,
    { errors: [{ extensions: { code: 'STORE_UNAVAILABLE' } }] },
  ]);
  const id = '00000000-0000-4000-8000-000000000000';
  const ofReceipt = await begin(`subscription { cepStatus(transactionId: "${id}") { kind } }`);
  expect(ofReceipt.status).toBe(200);
  expect(await ofReceipt.text()).toMatch(/^event: next\ndata: .*STORE_UNAVAILABLE.*\n\nevent: complete$/m);
  await fleet.redis.start();
  await everybodyHas(100);
  expect(readers[0]?.seen).toEqual(sent);
  expectWhole(sent);
  await until(async () => (await gateway.metric('pasarela_spooled_events')) === 0);
});

it('a Redis that hangs costs readers nothing either', async () => {
  const provider = startProvider(() => gateway, 4, 10);
  await everybodyHas(20);
  fleet.redis.freeze();
  const frozen = provider.answered.length;
  await until(() => provider.answered.length >= frozen + 60);
  fleet.redis.thaw();
  await everybodyHas(provider.answered.length + 20);
  await provider.stop();
  await everybodyHas(provider.answered.length);
  expectWhole(provider.answered);
});
