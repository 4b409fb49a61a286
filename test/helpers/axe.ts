import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** What axe finds on a page that is serious or critical: each rule, with the elements that break it. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(
    // Put there by the line above.
    () => (Reflect.get(globalThis, 'axe') as typeof axe).run(document),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
}
