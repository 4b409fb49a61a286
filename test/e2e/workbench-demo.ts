import type { Browser } from 'playwright-core';
import { expect } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';
import { freePort } from '../helpers/restartable.ts';
import { type Visit, visit } from './workbench-page.ts';

/** The demo, as `npm start` begins it, and a browser to look at it with. */
export interface Demo extends AsyncDisposable {
  readonly browser: Browser;
  /** Where its gateway and its sandbox are, and a token. */
  readonly addresses: Awaited<ReturnType<typeof demoAddresses>>;
  /** Opens its page. @param query of the page's address, with its question mark */
  open(options?: Parameters<typeof visit>[2], query?: string): Promise<Visit>;
  /** Lets a credit of 10.00 arrive as somebody else would, from outside the page. */
  credit(payerName: string): Promise<void>;
  kill(): Promise<void>;
  /** Starts it again, on the same ports. */
  start(variables?: Readonly<Record<string, string>>): Promise<void>;
}

export async function startDemo(variables: Readonly<Record<string, string>> = {}): Promise<Demo> {
  const ports = { PORT: String(await freePort()), SANDBOX_PORT: String(await freePort()) };
  const start = (more: Readonly<Record<string, string>>) =>
    startProgram('src/start.js', { ...ports, ...variables, ...more });
  let program = start({});
  let addresses = await demoAddresses(program);
  const browser = await startBrowser();
  return {
    browser,
    get addresses() {
      return addresses;
    },
    open: (options = {}, query = '') => visit(browser, `${addresses.gateway}/graphql${query}`, options),
    async credit(payerName) {
      const { accounts } = (await (await fetch(`${addresses.sandbox}/sandbox`)).json()) as {
        accounts: [{ clabe: string }];
      };
      const answer = await fetch(`${addresses.sandbox}/sandbox/spei-credits`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ clabe: accounts[0].clabe, amount: '10.00', payerName }),
      });
      expect(answer.status).toBe(201);
    },
    async kill() {
      await program.end('SIGKILL');
    },
    async start(more = {}) {
      program = start(more);
      addresses = await demoAddresses(program);
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await program.end('SIGKILL');
    },
  };
}
