import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { folder, prepareWebExample } from '../helpers/packages.ts';
import { demoAddresses, type Program, startProgram } from '../helpers/program.ts';
import { endWithThisProcess } from '../helpers/redis.ts';
import { freePort } from '../helpers/restartable.ts';

let ports: { readonly PORT: string; readonly SANDBOX_PORT: string };
let program: Program;
let vite: ChildProcess;
let browser: Browser;
let page: Page;
let origin: string;
const foreign: string[] = [];

/** The example as a newcomer runs it: `npm start`, and `npm --prefix examples/web run dev` beside it. */
beforeAll(async () => {
  await prepareWebExample();
  ports = { PORT: String(await freePort()), SANDBOX_PORT: String(await freePort()) };
  program = startProgram('src/start.js', ports);
  const { gateway, sandbox } = await demoAddresses(program);
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  vite = spawn(
    'npm',
    ['--prefix', 'examples/web', 'run', 'dev', '--', '--port', String(port), '--strictPort'],
    {
      cwd: folder('.'),
      env: { ...process.env, VITE_GATEWAY: `${gateway}/graphql`, SANDBOX_URL: sandbox },
      stdio: ['ignore', 'pipe', 'inherit'],
      // A group of its own, so that npm's children end with it.
      detached: true,
    },
  );
  endWithThisProcess(vite);
  await announced(vite, `:${port}/`);
  browser = await startBrowser();
  page = await browser.newPage({ locale: 'es-MX', viewport: { width: 390, height: 844 } });
  page.on('request', (request) => {
    const isOurs = [origin, gateway].some((address) => request.url().startsWith(address));
    if (/^(https?|wss?):/.test(request.url()) && !isOurs) foreign.push(request.url());
  });
});
afterAll(async () => {
  await browser?.close();
  if (vite?.pid !== undefined && vite.exitCode === null) process.kill(-vite.pid, 'SIGTERM');
  await program?.end('SIGKILL');
});

async function announced(child: ChildProcess, text: string): Promise<void> {
  if (child.stdout === null) throw new Error('its output is piped');
  let written = '';
  for (;;) {
    const [chunk] = await once(child.stdout, 'data');
    written += String(chunk);
    // Vite prints its address in colours, a part of it in bold.
    if (plain(written).includes(text)) return;
  }
}

const plain = (text: string): string =>
  text.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g'), '');

it('opens without a question on the sandbox, and shows the credits that it lets arrive', async () => {
  await page.goto(`${origin}/#/money-in`);
  await page.getByText('Aún no llega dinero.').waitFor();
  await page.locator('.status', { hasText: 'En vivo' }).waitFor();
  await page.getByRole('button', { name: 'Simular un abono' }).click();
  await page.getByRole('button', { name: 'Simular un abono' }).click();
  await page.locator('.credits li').nth(1).waitFor();
});

it('fits a telephone: nothing is wider than the screen', async () => {
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(await overflow()).toBe(0);
  await page.getByRole('link', { name: 'Verificar cuenta' }).click();
  await page.locator('.option').first().waitFor();
  expect(await overflow()).toBe(0);
});

it('can be used with the keyboard alone', async () => {
  await page.getByLabel('Buscar por nombre o CLABE').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  expect(await page.locator('.holder .name').textContent()).not.toBe('');
});

it('goes on with another token after a restart, and says that the sandbox has begun anew', async () => {
  await page.getByRole('link', { name: 'Abonos recibidos' }).click();
  await program.end('SIGKILL');
  await page.locator('.status', { hasText: 'Sin conexión' }).waitFor();
  program = startProgram('src/start.js', ports);
  await demoAddresses(program);
  await page.getByText('La lista empieza de nuevo con lo que sí guarda.').waitFor();
  await page.getByText('Aún no llega dinero.').waitFor();
  await page.locator('.status', { hasText: 'En vivo' }).waitFor();
  await page.getByRole('button', { name: 'Simular un abono' }).click();
  await page.locator('.credits li').waitFor();
});

it('has asked nobody but the gateway and its own server', () => {
  expect(foreign).toEqual([]);
});
