import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, headOf, type Member, startFleet, startProvider } from '../helpers/fleet.ts';
import { randomFrom } from '../helpers/random.ts';
import { startReaders } from '../helpers/reader.ts';
import { until } from '../helpers/until.ts';

const READERS = 200;

let fleet: Fleet;
let doomed: Member;
let other: Member;
beforeAll(async () => {
  fleet = await startFleet();
  [doomed, other] = await Promise.all([fleet.start(), fleet.start()]);
});
afterAll(() => fleet[Symbol.asyncDispose]());

it('200 readers of a gateway that is killed under load resume on another, without gap or repeat', async () => {
  let current = doomed;
  const readers = startReaders(READERS, {
    graphql: () => current.graphql,
    token: fleet.sandbox.accessToken,
    after: await headOf(other),
    random: randomFrom(1),
  });
  await until(async () => (await doomed.metric('pasarela_events_subscribers')) === READERS);

  const provider = startProvider(() => current, 2, 20);
  await until(() => readers.every(({ seen }) => seen.length >= 10));
  await doomed.program.end('SIGKILL');
  current = other;
  const before = provider.answered.length;
  await until(() => readers.every(({ seen }) => seen.length >= before + 10));
  await provider.stop();
  await until(() => readers.every(({ seen }) => seen.length >= provider.answered.length));

  const [first] = readers;
  expect(new Set(first?.seen)).toEqual(new Set(provider.answered));
  for (const { seen, told, connections } of readers) {
    expect(seen).toHaveLength(provider.answered.length);
    expect(seen).toEqual(first?.seen);
    expect(told).toEqual([]);
    expect(connections).toBeGreaterThan(1);
  }
  await Promise.all(readers.map((reader) => reader.leave()));
  await until(async () => (await other.metric('pasarela_events_subscribers')) === 0);
});
