import { expect, it } from 'vitest';
import { randomFrom } from '../helpers/random.ts';
import { interruptPayments } from './soak/settling-run.ts';

it('payments that are interrupted at random, in service mode, are settled as far as anything shows what became of them, and none is made twice', {
  timeout: 300_000,
}, async () => {
  const { lies, ended, told, kills } = await interruptPayments({
    intents: 100,
    random: randomFrom(4),
    failover: true,
    // The soak measures how long it takes; here it has to happen.
    withinMs: 150_000,
    // Longer than the test, so that it says what is not settled.
    lifetimeSeconds: 400,
  });
  expect(lies).toEqual([]);
  expect(kills).toBeGreaterThan(0);
  // There was something to settle.
  expect(told['createMoneyOut OutcomeUnknown']).toBeGreaterThan(0);
  expect(ended['createMoneyOut UNKNOWN moved 0']).toBeUndefined();
});
