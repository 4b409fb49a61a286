import { expect, it } from 'vitest';
import { SCOPES } from '../../src/auth/caller.ts';
import { Waiters } from '../../src/common/waiters.ts';
import { Budget } from '../../src/operation/budget.ts';
import type { Incoming } from '../../src/operation/incoming.ts';
import { stillTime } from '../helpers/still-time.ts';

const OPTIONS = { operationTimeoutMs: 60_000, maxItems: 5 };
const KEPT = { bytes: 1, document: {}, documentBytes: 1 };

const budgetOf = (incoming: Partial<Incoming> = {}): Budget =>
  new Budget(OPTIONS, { waiters: undefined, ...incoming }, () => undefined);

it('sums the items of all pages, and begins anew where an operation is executed a second time', () => {
  const budget = budgetOf();
  expect([budget.countItems(2), budget.countItems(3)]).toEqual([2, 5]);
  budget.recount();
  expect(budget.countItems(4)).toBe(4);
});

it('gives an operation that is executed a second time the whole of what it may read of the log', () => {
  const budget = budgetOf();
  const first = budget.log;
  expect(first.take(1_000_000)).toBeGreaterThan(0);
  expect(budget.log.take(1)).toBe(0);
  budget.recount();
  expect(budget.log.take(1)).toBe(1);
});

it('moves the deadline on for the next event of a stream, for what it reads of the log too', () => {
  const budget = new Budget({ ...OPTIONS, operationTimeoutMs: 0 }, { waiters: undefined }, () => undefined);
  const { deadline, log } = budget;
  expect(log.isOver).toBe(true);
  budget.extend();
  expect(budget.deadline).toBeGreaterThanOrEqual(deadline);
  expect(budget.log).toBe(log);
});

it('lets a list be read on while there is time, in its turn, and not for one who is gone', async () => {
  using time = stillTime();
  const waiters = new Waiters();
  let turns = 0;
  const turn = async () => {
    turns += 1;
  };
  const budget = new Budget(OPTIONS, { waiters }, turn);
  expect(await budget.mayReadOn()).toBe(true);
  await time.pass(OPTIONS.operationTimeoutMs);
  expect(await budget.mayReadOn()).toBe(false);
  expect(turns).toBe(2);
  budget.extend();
  waiters.remove();
  await expect(budget.mayReadOn()).rejects.toThrow();
  expect(turns).toBe(2);
});

it('lets no list be read on where the time has ended, or the caller has left, while it waited for its turn', async () => {
  using time = stillTime();
  const waiters = new Waiters();
  const turns: PromiseWithResolvers<void>[] = [];
  const budget = new Budget(OPTIONS, { waiters }, () => {
    const turn = Promise.withResolvers<void>();
    turns.push(turn);
    return turn.promise;
  });
  const late = budget.mayReadOn();
  await time.pass(OPTIONS.operationTimeoutMs);
  turns[0]?.resolve();
  expect(await late).toBe(false);
  budget.extend();
  const left = budget.mayReadOn();
  waiters.remove();
  turns[1]?.resolve();
  await expect(left).rejects.toThrow();
});

it('gives an event that comes after hours no more time than the first', async () => {
  using time = stillTime();
  const budget = budgetOf();
  await time.pass(3_600_000);
  budget.extend();
  expect(budget.deadline).toBe(Date.now() + OPTIONS.operationTimeoutMs);
});

it('aborts when nobody waits any more, and never where that is not told', () => {
  const waiters = new Waiters();
  const budget = budgetOf({ waiters });
  const { signal } = budget;
  expect(signal.aborted).toBe(false);
  waiters.remove();
  expect(signal.aborted).toBe(true);
  expect(budgetOf().signal.aborted).toBe(false);
});

it('counts a stream as its caller’s, and passes on why one may not begin', () => {
  const counted: unknown[] = [];
  const budget = budgetOf({
    openStream: (owner, kept) => {
      counted.push(owner, kept);
      return 'caller-full';
    },
  });
  const caller = {
    clientId: 'c',
    customerId: undefined,
    subject: 'alma',
    keyOwner: undefined,
    scopes: SCOPES,
    expiresAt: undefined,
  };
  expect(budget.openStream(caller, KEPT)).toBe('caller-full');
  expect(counted).toEqual([{ caller: 'c  alma', clientId: 'c' }, KEPT]);
  expect(budgetOf().openStream(caller, KEPT)).toBeUndefined();
});
