import { expect, it } from 'vitest';
import { Report } from '../../src/operation/report.ts';

const call = (path: string) => ({
  method: 'GET',
  route: '/v1/banks',
  path,
  status: 200,
  milliseconds: 1,
  startedAt: 0,
  queuedMs: 0,
  unreadMs: 0,
  cached: false,
  identifies: false,
});

const sessionOf = (counts: Record<string, number>) => ({ lookUps: () => Object.entries(counts) });

it('tells calls of its own from those that other operations made', () => {
  const report = new Report();
  report.add(call('/a'));
  report.addShared(call('/b'));
  report.addShared(call('/c'));
  expect(report.calls.map(({ path }) => path)).toEqual(['/a']);
  expect(report.sharedCalls.map(({ path }) => path)).toEqual(['/b', '/c']);
});

it('of a shared result shows the calls that made it', () => {
  const report = new Report();
  report.share([call('/a'), call('/b')]);
  expect(report.sharedCalls.map(({ path }) => path)).toEqual(['/a', '/b']);
});

it('sums look-ups over the sessions of an operation that has changed something in between', () => {
  const report = new Report();
  expect([...report.lookUps()]).toEqual([]);
  const first = { '/v1/banks': 2 };
  report.count(sessionOf(first));
  first['/v1/banks'] = 3;
  report.count(sessionOf({ '/v1/banks': 1, '/v1/accounts': 4 }));
  report.count(sessionOf({ '/v1/accounts': 1 }));
  expect([...report.lookUps()]).toEqual([
    ['/v1/banks', 4],
    ['/v1/accounts', 5],
  ]);
});

it('reports nothing of one event with the next', () => {
  const report = new Report();
  const calls = report.calls;
  report.add(call('/a'));
  report.addShared(call('/b'));
  report.count(sessionOf({ '/v1/banks': 2 }));
  report.count(sessionOf({ '/v1/accounts': 1 }));
  report.clear();
  expect(report.calls).toEqual([]);
  expect(report.sharedCalls).toEqual([]);
  expect([...report.lookUps()]).toEqual([]);
  // Who shares the answer of the event before still holds its calls.
  expect(calls.map(({ path }) => path)).toEqual(['/a']);
});
