import { expect, it } from 'vitest';
import { lastKnown } from '../../src/common/last-known.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

/** A look that ends when the test says so. */
function looks() {
  const begun: PromiseWithResolvers<number>[] = [];
  const find = () => {
    const one = Promise.withResolvers<number>();
    begun.push(one);
    return one.promise;
  };
  return { begun, find };
}

it('one look serves all who ask for a while', async () => {
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 60_000, waitMs: 60_000 });
  const first = [ask(), ask()];
  begun[0]?.resolve(1);
  expect((await Promise.all(first)).map((known) => known?.found)).toEqual([1, 1]);
  expect((await ask())?.found).toBe(1);
  expect(begun).toHaveLength(1);
});

it('tells what was found last, and how old that is, while a look goes on, however often it is asked', async () => {
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 0, waitMs: 1 });
  expect(await ask()).toBeUndefined();
  expect(await ask()).toBeUndefined();
  begun[0]?.resolve(1);
  await until(async () => (await ask())?.found === 1);
  const [before, count] = [await ask(), begun.length];
  await until(async () => ((await ask())?.ageMs ?? 0) > (before?.ageMs ?? 0));
  expect((await ask())?.found).toBe(1);
  expect(begun).toHaveLength(count);
  begun.at(-1)?.resolve(2);
  await until(async () => (await ask())?.found === 2);
});

it('a look that fails leaves what was found before, and is made again', async () => {
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 0, waitMs: 1 });
  const first = ask();
  begun[0]?.resolve(1);
  expect((await first)?.found).toBe(1);
  const second = ask();
  begun[1]?.reject(new Error('away'));
  expect((await second)?.found).toBe(1);
  await until(async () => (await ask()) !== undefined && begun.length === 3);
});

it('a look that failed is not made again at once, though nothing has been found yet', async () => {
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 60_000, waitMs: 60_000 });
  const first = ask();
  begun[0]?.reject(new Error('away'));
  expect(await first).toBeUndefined();
  expect(await ask()).toBeUndefined();
  expect(begun).toHaveLength(1);
});

it('what was found is as old as the look that found it, from its beginning', async () => {
  using time = stillTime();
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 1_000, waitMs: 5_000 });
  const first = ask();
  await time.pass(400);
  begun[0]?.resolve(1);
  expect(await first).toEqual({ found: 1, ageMs: 400, silentMs: 0 });
  await time.pass(599);
  expect(await ask()).toEqual({ found: 1, ageMs: 999, silentMs: 0 });
  expect(begun).toHaveLength(1);
  await time.pass(1);
  void ask();
  expect(begun).toHaveLength(2);
});

it('is silent for as long as it has been looked in vain, and not for as long as nobody has asked', async () => {
  using time = stillTime();
  const { begun, find } = looks();
  const ask = lastKnown(find, { freshMs: 1_000, waitMs: 300 });
  const asked = async (passes: number) => {
    const known = ask();
    await time.pass(passes);
    return known;
  };
  const first = ask();
  begun[0]?.resolve(1);
  await first;
  await time.pass(60_000);
  expect(await asked(300)).toEqual({ found: 1, ageMs: 60_300, silentMs: 300 });
  begun[1]?.reject(new Error('away'));
  await time.pass(700);
  expect(await asked(300)).toEqual({ found: 1, ageMs: 61_300, silentMs: 1_300 });
  begun[2]?.resolve(2);
  await time.pass(0);
  expect(await ask()).toEqual({ found: 2, ageMs: 300, silentMs: 0 });
});
