import type { Page } from 'playwright-core';

/** Runs in the page: keeps the codes that sockets are closed with, and lets the test hide the app. */
export function recordCloses(): void {
  const codes: number[] = [];
  const Native = WebSocket;
  class Recorded extends Native {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      this.addEventListener('close', ({ code }) => codes.push(code));
    }
  }
  let visibility = 'visible';
  Object.assign(globalThis, {
    WebSocket: Recorded,
    closes: codes,
    show(next: string) {
      visibility = next;
      document.dispatchEvent(new Event('visibilitychange'));
    },
  });
  Object.defineProperty(document, 'visibilityState', { get: () => visibility });
}

/** The codes that the page's sockets were closed with. */
export const closesOf = (page: Page): Promise<number[]> =>
  // Put there by the function above, as is `show`.
  page.evaluate(() => Reflect.get(globalThis, 'closes') as number[]);

/** Hides the app, or shows it again. */
export const showApp = (page: Page, visibility: 'hidden' | 'visible'): Promise<void> =>
  page.evaluate((next) => (Reflect.get(globalThis, 'show') as (next: string) => void)(next), visibility);

/** Fills in the form of who signs in by hand. */
export async function connect(page: Page, gateway: string, token: string): Promise<void> {
  await page.getByLabel('Dirección del gateway').fill(gateway);
  await page.getByLabel('Token de acceso').fill(token);
  await page.getByRole('button', { name: 'Conectar' }).click();
}

export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Salir' }).click();
  await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
}

/** Sends the cent to an account, by its name. */
export async function verify(page: Page, receiver: string): Promise<void> {
  await page.getByRole('radio', { name: receiver }).click();
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
}

/** What the app keeps on the device, by name. */
export const keptBy = (page: Page): Promise<Record<string, string>> =>
  page.evaluate(() => ({ ...localStorage }) as Record<string, string>);
