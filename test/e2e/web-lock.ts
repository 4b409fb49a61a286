import type { Page } from 'playwright-core';
import { until } from '../helpers/until.ts';

/** Holds a lock in a page, so that what asks for it there has to wait. */
export async function holdLock(page: Page, name: string) {
  await page.evaluate(
    (wanted) =>
      new Promise<void>((isHeld) => {
        const held = () => new Promise<void>((release) => Object.assign(globalThis, { release }, isHeld()));
        void navigator.locks.request(wanted, held);
      }),
    name,
  );
  const locks = () => page.evaluate(() => navigator.locks.query());
  return {
    isWanted: () => until(async () => (await locks()).pending?.some((lock) => lock.name === name)),
    /** Lets it go, and resolves once those who waited have had it as well. */
    async release(): Promise<void> {
      await page.evaluate(() => (Reflect.get(globalThis, 'release') as () => void)());
      await until(async () => {
        const { held = [], pending = [] } = await locks();
        return ![...held, ...pending].some((lock) => lock.name === name);
      });
    },
  };
}
