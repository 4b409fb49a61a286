import { expect, it } from 'vitest';
import { ROUND_MS, type RoundMember, Rounds } from '../../src/common/rounds.ts';
import { bell } from '../helpers/bell.ts';

it('calls each member once in a round, few at a time, and none that has left', async () => {
  const clock = bell();
  const rounds = new Rounds(clock);
  const called = new Map<RoundMember, number[]>();
  const members = Array.from({ length: 200 }, () => {
    const member = { remind: () => void called.get(member)?.push(clock.now()) };
    called.set(member, []);
    rounds.add(member);
    return member;
  });
  await clock.pass(ROUND_MS);
  const times = [...called.values()].flat();
  expect([...called.values()].every((own) => own.length === 1)).toBe(true);
  const most = Math.max(
    ...Map.groupBy(times, (time) => time)
      .values()
      .map(({ length }) => length),
  );
  expect(most).toBeLessThan(10);
  const [left] = members;
  if (left === undefined) throw new Error('there are two hundred');
  rounds.delete(left);
  await clock.pass(2 * ROUND_MS);
  expect(members.map((member) => called.get(member)?.length)).toEqual([1, ...members.slice(1).map(() => 3)]);
});

it('waits for nothing while there is no member, and a member may leave as it is called', async () => {
  const clock = bell();
  const rounds = new Rounds(clock);
  expect(clock.isIdle).toBe(true);
  for (const _time of ['first', 'second']) {
    const member = { remind: () => rounds.delete(member) };
    rounds.add(member);
    expect(clock.isIdle).toBe(false);
    await clock.pass(ROUND_MS);
    expect(clock.isIdle).toBe(true);
    // Whoever is not there may be taken away as well.
    rounds.delete(member);
  }
  const member = { remind: () => undefined };
  rounds.add(member);
  rounds.delete(member);
  expect(clock.isIdle).toBe(true);
});
