import { expect, it } from 'vitest';
import { type Condition, readiness } from '../../src/transport/readiness.ts';

const WELL = {
  ageMs: 0,
  silentMs: 0,
  writable: true,
  eventsAvailable: true,
  paymentsAvailable: true,
  paymentsHeld: [],
  spooled: 0,
  unreadableSpools: [],
} as const;

const say = (stores: Condition['stores'], other: Partial<Condition> = {}) =>
  readiness({ draining: false, unwritten: 0, suspended: undefined, stores, ...other });

it('is ready while nothing is amiss', () => {
  expect(say(WELL)).toEqual({
    status: 200,
    body: { status: 'ready', degraded: [], spooled: 0, ageMs: 0 },
  });
});

it.each([
  ['events', say({ ...WELL, eventsAvailable: false, spooled: 3 })],
  ['payments', say({ ...WELL, paymentsAvailable: false, spooled: 3 })],
])('is degraded and in rotation without %s', (name, said) => {
  expect(said).toEqual({
    status: 200,
    body: { status: 'degraded', degraded: [name], spooled: 3, ageMs: 0 },
  });
});

it('says why payments cannot be recorded, where the event log does not', () => {
  const paymentsProblem = 'The record of payments in DATA_DIR cannot be written: database is locked.';
  expect(say({ ...WELL, paymentsAvailable: false, paymentsProblem }).body).toMatchObject({
    degraded: ['payments'],
    reasons: [paymentsProblem],
  });
});

it('says how much of payments a restart would lose, ready or not', () => {
  expect(say(WELL, { unwritten: 2 })).toEqual({
    status: 200,
    body: { status: 'ready', degraded: [], spooled: 0, unwritten: 2, ageMs: 0 },
  });
  const body = { status: 'unready', unwritten: 1 };
  expect(say({ ...WELL, writable: false }, { unwritten: 1 })).toMatchObject({ status: 503, body });
});

it.each(['all', 'some'] as const)(
  'is degraded and in rotation while calls of %s are suspended',
  (suspended) => {
    const { status, body } = say(WELL, { suspended });
    const whose = suspended === 'all' ? 'everybody' : 'some callers';
    const reasons = [expect.stringContaining(`suspended for ${whose}`)];
    expect({ status, body }).toMatchObject({ status: 200, body: { degraded: ['upstream'], reasons } });
  },
);

it('is degraded with spools that cannot be read, and names them', () => {
  const unreadableSpools = ['spooled-0.sqlite', 'spooled-2.sqlite'];
  expect(say({ ...WELL, unreadableSpools })).toEqual({
    status: 200,
    body: { status: 'degraded', degraded: ['spool'], spooled: 0, ageMs: 0, unreadableSpools },
  });
});

it('is degraded while its spool takes no event, and says why, also where nothing takes one', () => {
  const spoolProblem = 'The spool in DATA_DIR takes no event: database or disk is full.';
  expect(say({ ...WELL, spoolProblem })).toEqual({
    status: 200,
    body: { status: 'degraded', degraded: ['spool'], spooled: 0, ageMs: 0, reasons: [spoolProblem] },
  });
  const { body } = say({ ...WELL, writable: false, reasons: ['Redis does not answer.'], spoolProblem });
  expect(body.reasons?.slice(1)).toEqual(['Redis does not answer.', spoolProblem]);
});

it('is taken out of rotation when no event could be kept, while nobody knows, and while it ends', () => {
  const full = expect.stringMatching(/^No event can be kept, so that webhooks get 503: .*DATA_DIR/);
  expect(say({ ...WELL, writable: false })).toEqual({
    status: 503,
    body: { status: 'unready', reasons: [full] },
  });
  expect(say({ ...WELL, writable: false, reasons: ['Redis does not answer.'] })).toEqual({
    status: 503,
    body: { status: 'unready', reasons: [full, 'Redis does not answer.'] },
  });
  expect(say(undefined)).toEqual({
    status: 503,
    body: { status: 'unready', reasons: ['The first look at the stores has not ended yet.'] },
  });
  expect(say(WELL, { draining: true })).toEqual({ status: 503, body: { status: 'draining' } });
  expect(say(undefined, { draining: true })).toEqual({ status: 503, body: { status: 'draining' } });
});

it('tells how old its knowledge is, and counts stores as away that were asked in vain for long', () => {
  const old = { ...WELL, ageMs: 60_000, silentMs: 9_000 };
  expect(say(old)).toMatchObject({ body: { status: 'ready', ageMs: 60_000 } });
  expect(say({ ...old, ageMs: 12_345.6, silentMs: 12_100 })).toEqual({
    status: 200,
    body: {
      status: 'degraded',
      degraded: ['events', 'payments'],
      spooled: 0,
      ageMs: 12_346,
      reasons: ['The stores have said nothing for 12 s.'],
    },
  });
});
