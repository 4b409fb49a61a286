import fc from 'fast-check';
import { expect, it } from 'vitest';
import { speiCredit, startIngress } from '../helpers/ingress.ts';

const RUNS = 2000;

/** Garbage of every kind: noise, any JSON, and true credits with parts replaced, removed or cut off. */
const anyDelivery = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.json({ maxDepth: 6 }),
  fc
    .record({ at: fc.constantFrom(...Object.keys(speiCredit().body)), value: fc.anything() })
    .map(({ at, value }) => stringify(speiCredit({ body: { [at]: value } }))),
  fc
    .record({ id_msg: fc.jsonValue(), body: fc.jsonValue() })
    .map((parts) => stringify({ ...speiCredit(), ...parts })),
  fc.double({ min: 0, max: 1, noNaN: true }).map((share) => {
    const text = stringify(speiCredit());
    return text.slice(0, Math.floor(text.length * share));
  }),
  fc
    .constantFrom('__proto__', 'constructor', 'toString')
    .map((name) => `{"body":{"${name}":{"id":"1","amount":"1"}}}`),
);

it(`answers ${RUNS} fuzzed MONEY_IN bodies with 201 or 400, never with 422, and lives`, async () => {
  await using ingress = await startIngress();
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(anyDelivery, async (body) => {
      const { status } = await ingress.post('MONEY_IN', body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect([201, 400]).toContain(status);
    }),
    { numRuns: RUNS, seed: 5 },
  );
  expect([...statuses.keys()].sort()).toEqual([201, 400]);
  expect((await ingress.post('MONEY_IN', speiCredit())).status).toBe(201);
});

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    // Cyclic, or with a BigInt in it: no provider can have sent it.
    return String(value);
  }
}
