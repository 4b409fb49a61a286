import { expect, it } from 'vitest';
import { createLimitLog } from '../../src/observability/limit-log.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { stillTime } from '../helpers/still-time.ts';

it('whose operations and streams are refused is one line a minute for each limit and client, and names no person or address', async () => {
  using time = stillTime();
  const lines: string[] = [];
  const tell = createLimitLog(collectingLogger(lines));
  const told = () => lines.splice(0).map((line) => JSON.parse(line));
  const line = { level: 'warn', message: 'requests are refused, as a limit is reached' };
  for (const caller of ['alma', 'berta', 'carla']) {
    tell('operations', `customer c1 ${caller}`);
    tell('operations', `subject ${caller}`);
    tell('operations', `address ${caller}`);
    tell('kept_of_group', 'client c1');
    tell('operations', 'client c2');
  }
  const first = [
    { ...line, limit: 'operations', of: 'customer', clientId: 'c1', refused: 1 },
    { ...line, limit: 'operations', of: 'subject', refused: 1 },
    { ...line, limit: 'operations', of: 'address', refused: 1 },
    { ...line, limit: 'kept_of_group', of: 'client', clientId: 'c1', refused: 1 },
    { ...line, limit: 'operations', of: 'client', clientId: 'c2', refused: 1 },
  ];
  expect(told()).toEqual(first);
  await time.pass(59_999);
  tell('operations', 'client c2');
  expect(told()).toEqual([]);
  // What came within the minute is told at its end, though nothing more is refused.
  await time.pass(1);
  expect(told()).toEqual(first.map((one, at) => ({ ...one, refused: [2, 2, 2, 2, 3][at] })));
  await time.pass(60_000);
  expect(told()).toEqual([]);
  for (const full of ['queue', 'caller', 'queue'] as const) tell('operations', 'client c2', full);
  const { message, level } = line;
  const more = { level, message, limit: 'operations', of: 'client', clientId: 'c2', refused: 1 };
  expect(told()).toEqual([
    { ...more, full: 'queue' },
    { ...more, full: 'caller' },
  ]);
});
