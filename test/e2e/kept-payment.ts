import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Intent } from '../../packages/client/src/index.ts';

/**
 * Waits until an example keeps, in `localStorage`, a payment that may have been sent and that has no answer. Its button says that it is sent
 * before that: an app that is closed in between has sent nothing.
 */
export async function keepsUnanswered(page: Page): Promise<void> {
  await expect
    .poll(async () => {
      const lists = await page.evaluate(() =>
        Object.entries<string>(localStorage)
          .filter(([name]) => name.startsWith('pasarela.intents.'))
          .map(([, list]) => list),
      );
      return lists.flatMap((list) => JSON.parse(list) as Intent[]).map(isUnanswered);
    })
    .toContain(true);
}

const isUnanswered = ({ unanswered, result }: Intent): boolean => unanswered > 0 && result === undefined;
