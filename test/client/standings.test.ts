import { expect, it } from 'vitest';
import {
  type Intent,
  memoryIntents,
  pay,
  type Standing,
  standingOf,
  unsettled,
} from '../../packages/client/src/index.ts';
import { done, INPUT, lost, MUTATION, refusedCall, result, scripted } from './scripted.ts';

const HOUR_MS = 3_600_000;
const DAYS_29 = 29 * 24;

/** What the store has after one press, which is answered so, some hours later. */
async function kept(answer: Parameters<typeof scripted>[0], hours: number, acknowledges = false) {
  const store = memoryIntents();
  const outcome = await pay(scripted(answer ?? lost).source, MUTATION, INPUT, { store, patienceMs: 0 });
  if (acknowledges) await outcome.acknowledge();
  const before = await store.load();
  const createdAt = new Date(Date.now() - hours * HOUR_MS).toISOString();
  await store.save(
    before.map((intent) => ({ ...intent, createdAt })),
    before,
  );
  return store;
}

const refusal = result('ValidationError', { code: 'INVALID_INPUT', message: 'No.' });
const unknown = result('OutcomeUnknown', { safeToRetry: false, message: 'Nobody knows.' });

it.each<[string, Parameters<typeof scripted>[0], number, Standing | undefined]>([
  ['done', done, 0, 'done'],
  ['done, and a month old', done, DAYS_29 + 1, 'done'],
  ['refused', refusal, 0, 'refused'],
  ['refused, and a month old', refusal, DAYS_29 + 1, 'refused'],
  ['refused by the gateway before it looked at it', refusedCall('FORBIDDEN'), 0, 'refused'],
  ['without an answer', lost, 0, 'unknown'],
  ['without an answer just below 23 hours', lost, 22.99, 'unknown'],
  ['without an answer just above 23 hours', lost, 23.01, 'late'],
  ['without an answer, and a month old', lost, DAYS_29 + 1, 'late'],
  ['called unknown by the gateway', unknown, 0, 'unknown'],
  ['called unknown by the gateway a day ago', unknown, 24, 'unknown'],
])('a payment that is %s stands so', async (_, answer, hours, standing) => {
  const store = await kept(answer, hours);
  const [intent] = await store.load();
  expect(standingOf(intent as Intent)).toBe(standing);
  expect(await unsettled(store)).toHaveLength(standing === 'refused' ? 0 : 1);
});

it.each([
  ['done', done],
  ['refused', refusal],
])('of one that is %s nothing is to be shown once its end was seen', async (_, answer) => {
  const [intent] = await (await kept(answer, 0, true)).load();
  expect(standingOf(intent as Intent)).toBeUndefined();
});

it('one of which no call has moved money is unpaid until the gateway no longer knows its key', async () => {
  const [intent] = await (await kept(lost, 0)).load();
  const standing = (hours: number) => {
    const createdAt = new Date(Date.now() - hours * HOUR_MS).toISOString();
    return standingOf({ ...(intent as Intent), unanswered: 0, createdAt });
  };
  expect([0, 24, DAYS_29 - 1, DAYS_29 + 1].map(standing)).toEqual(['unpaid', 'unpaid', 'unpaid', undefined]);
});
