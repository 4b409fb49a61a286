import { expect, it } from 'vitest';
import { type Condition, readiness } from '../../src/transport/readiness.ts';

const WELL: Condition = {
  draining: false,
  writable: true,
  eventsAvailable: true,
  paymentsAvailable: true,
  paymentsHeld: undefined,
  upstreamAvailable: true,
  spooled: 0,
  unreadableSpools: [],
};

it('is ready while nothing is amiss', () => {
  expect(readiness(WELL)).toEqual({ status: 200, body: { status: 'ready', degraded: [], spooled: 0 } });
});

it.each<[string, Partial<Condition>]>([
  ['events', { eventsAvailable: false }],
  ['payments', { paymentsAvailable: false }],
  ['upstream', { upstreamAvailable: false }],
])('is degraded and in rotation without %s', (name, change) => {
  expect(readiness({ ...WELL, ...change, spooled: 3 })).toEqual({
    status: 200,
    body: { status: 'degraded', degraded: [name], spooled: 3 },
  });
});

it('is degraded with spools that cannot be read, and names them', () => {
  const unreadableSpools = ['spooled-0.sqlite', 'spooled-2.sqlite'];
  expect(readiness({ ...WELL, unreadableSpools })).toEqual({
    status: 200,
    body: { status: 'degraded', degraded: ['spool'], spooled: 0, unreadableSpools },
  });
});

it('is taken out of rotation when no event could be kept, and while it ends', () => {
  expect(readiness({ ...WELL, writable: false })).toEqual({ status: 503, body: { status: 'unready' } });
  expect(readiness({ ...WELL, draining: true })).toEqual({ status: 503, body: { status: 'draining' } });
});
