import type { Page } from 'playwright-core';
import type { RestartableGateway } from '../helpers/restartable.ts';

/** Signs in on the web example's form, in either language. A page asks for the token each time it is loaded. */
export async function signIn(page: Page, gateway: RestartableGateway): Promise<void> {
  await page.locator('input[name=endpoint]').fill(gateway.graphql);
  await page.locator('input[name=token]').fill(gateway.sandbox.accessToken);
  await page.locator('form button[type=submit]').click();
}
