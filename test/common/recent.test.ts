import { expect, it } from 'vitest';
import { recent } from '../../src/common/recent.ts';

it('an answer serves those who ask for a moment, and while it is being found out; then it is found out again', async () => {
  let now = 0;
  const found: PromiseWithResolvers<number>[] = [];
  const ask = recent(
    () => {
      const one = Promise.withResolvers<number>();
      found.push(one);
      return one.promise;
    },
    100,
    () => now,
  );
  const first = [ask(), ask()];
  now = 500;
  const late = ask();
  found[0]?.resolve(1);
  expect(await Promise.all([...first, late])).toEqual([1, 1, 1]);
  const second = ask();
  now = 550;
  found[1]?.reject(new Error('away'));
  await expect(second).rejects.toThrow('away');
  await expect(ask()).rejects.toThrow('away');
  now = 600;
  const third = ask();
  found[2]?.resolve(3);
  expect(await third).toBe(3);
  expect(found).toHaveLength(3);
});
