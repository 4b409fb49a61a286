import type { Browser, BrowserContextOptions } from 'playwright-core';
import { type Choices, createSandbox, type TestSandbox } from '../../packages/sandbox/src/index.ts';
import { freePort } from '../helpers/restartable.ts';
import { openReceiver } from '../sandbox/harness.ts';

/** A sandbox with a receiver of its webhooks, and somebody who looks at its page. */
export async function visitSandbox(
  browser: Browser,
  path = '/',
  options: BrowserContextOptions = {},
  choices: Partial<Choices> = {},
) {
  // A test may start another one in its place: a port that the system gives out would be another program's by then.
  const sandbox: TestSandbox = await createSandbox({ seed: 7, choices, port: await freePort() });
  const receiver = await openReceiver({ status: 201 });
  for (const webhook_type of ['MONEY_IN', 'CEP']) {
    await fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ client_id: sandbox.clientId, url: receiver.url, token: 'token', webhook_type }),
    });
  }
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  // What the console says stands there for eight seconds, and a test may look later.
  await context.addInitScript(() => {
    const { setTimeout } = window;
    const longer = (work: TimerHandler, ms?: number, ...more: unknown[]): number =>
      setTimeout(work, ms === 8_000 ? 60_000 : ms, ...more);
    Object.assign(window, { setTimeout: longer });
  });
  const page = await context.newPage();
  const failures: string[] = [];
  page.on('pageerror', (error) => failures.push(error.message));
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) failures.push(message.text());
  });
  await page.goto(sandbox.url + path);
  await page.locator('main').waitFor();
  const close = async () => {
    await context.close();
    await sandbox.close();
    await receiver.close();
  };
  return { sandbox, receiver, page, context, failures, [Symbol.asyncDispose]: close };
}
