import { expect, it } from 'vitest';
import { tokens } from '../../packages/client/src/tokens.ts';

it('a token that was refused stays so, though an earlier one is accepted after that', async () => {
  const given = ['one', 'two', 'two', 'three'];
  const told: boolean[] = [];
  const next = tokens(({ refused }) => {
    told.push(refused);
    return given.shift() ?? '';
  }, 1_000);
  const [one, two] = [await next(), await next()];
  two.refuse();
  one.accept();
  const again = await next();
  expect(told).toEqual([false, false, true]);
  again.accept();
  await next();
  expect(told).toEqual([false, false, true, false]);
});
