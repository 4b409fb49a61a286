import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TEXTS } from '../../workbench/graphiql-texts.ts';
import { SPANISH } from '../../workbench/src/spanish.ts';
import { GRAPHIQL_SPANISH } from '../../workbench/src/spanish-graphiql.ts';
import { folder } from '../helpers/packages.ts';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { openTab, result, tells } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

/** What GraphiQL says in English, with anything where something is filled in, and what its icons were called. */
const ENGLISH = [
  ...TEXTS.filter((text) => spanishOf(text) !== text).map((text) => {
    const escaped = text.trim().replaceAll(/[.*+?^$()[\]\\|]/g, '\\$&');
    return new RegExp(`^${escaped.replaceAll(/\{\w+\}/g, '.+')}$`);
  }),
  / icon$/,
];

function spanishOf(text: string): string | undefined {
  return SPANISH[text] ?? GRAPHIQL_SPANISH[text];
}

/** What stands or is read aloud anywhere on the page. */
const shown = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.body.querySelectorAll('*')].flatMap((element) => [
      ...['aria-label', 'title', 'placeholder'].flatMap((name) => element.getAttribute(name)?.trim() ?? []),
      ...[...element.childNodes].flatMap((node) =>
        node instanceof Text && node.data.trim() !== '' ? [node.data.trim()] : [],
      ),
    ]),
  );

async function englishOn(page: Page, atLeast = 30): Promise<readonly string[]> {
  const texts = await shown(page);
  expect(texts.length).toBeGreaterThan(atLeast);
  return texts.filter((text) => ENGLISH.some((english) => english.test(text)));
}

async function openPane(page: Page, name: string): Promise<void> {
  await page.locator('.wb-rail').getByRole('button', { name, exact: true }).click();
  await page.getByRole('complementary', { name, exact: true }).waitFor();
}

/** Plays, by the button that says so in Spanish. */
const play = (page: Page): Promise<void> =>
  page.getByRole('button', { name: 'Ejecutar (Ctrl-Enter)' }).click();

describe('in Spanish', () => {
  it('everything that the page itself says is Spanish, and can be English again', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page } = one;
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('es-MX');
    await play(page);
    await page
      .locator('.wb-waterfall')
      .getByText(/^1 petición, 4 llamadas REST/)
      .waitFor();
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await page.getByText('Escuchando. Todavía no pasa nada.').waitFor();
    await page.locator('.wb-sandbox').getByRole('button', { name: 'Simular un abono' }).click();
    await page.locator('.wb-said', { hasText: /^Llegaron 1250\.00 MXN/ }).waitFor();
    await page.getByLabel('Monto en pesos').fill('0');
    await page.locator('.wb-sandbox').getByRole('button', { name: 'Simular un abono' }).click();
    await page.locator('.wb-said', { hasText: 'Monto: un número mayor que cero' }).waitFor();
    const said = await page
      .locator('.wb-header, .wb-story, .wb-stream > header, .wb-sandbox')
      .allInnerTexts();
    expect(said.join(' ')).not.toMatch(/\b(the|of|and|to|with|is|events?|next|stream|credit|answer)\b/i);
    await page.getByRole('button', { name: 'English' }).click();
    // The stream has come back too.
    await page.getByRole('button', { name: 'Stop the stream' }).waitFor();
    await page.locator('.wb-status', { hasText: 'Live' }).waitFor();
  });

  it('the documentation, its search and the explorer are Spanish', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page } = one;
    await openPane(page, 'Documentación');
    const pane = page.locator('.wb-pane');
    await pane.getByText('Tipos raíz').waitFor();
    expect(await englishOn(page)).toEqual([]);
    await pane.getByRole('link', { name: 'Query', exact: true }).click();
    await pane.getByRole('link', { name: 'Volver a Documentación' }).waitFor();
    await pane.getByText('Campos', { exact: true }).waitFor();
    await pane.getByRole('combobox').fill('zzzz');
    await pane.getByText('Sin resultados').waitFor();
    // The rest of the page can be pressed meanwhile.
    expect(await englishOn(page)).toEqual([]);
    await openPane(page, 'Explorador');
    await pane.getByRole('button', { name: 'Agregar', exact: true }).waitFor();
    await pane.getByRole('button', { name: 'Duplicar esta operación' }).waitFor();
    expect(await englishOn(page)).toEqual([]);
  });

  it('the history with what its buttons say, and the code are Spanish', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page } = one;
    await play(page);
    await result(page, /"totalCount": \d+/);
    await openPane(page, 'Historial');
    const entry = page.locator('.graphiql-history-item').first();
    await entry.getByRole('button', { name: 'Agregar a favoritos' }).hover();
    await page.locator('.graphiql-tooltip', { hasText: 'Agregar a favoritos' }).waitFor();
    expect(await englishOn(page)).toEqual([]);
    await entry.getByRole('button', { name: 'Cambiar el nombre' }).click();
    await entry.getByPlaceholder('Escribe un nombre').waitFor();
    expect(await englishOn(page)).toEqual([]);
    await entry.getByRole('button', { name: 'Cancelar' }).click();
    await entry.getByRole('button', { name: 'Borrar del historial' }).waitFor();
    await openPane(page, 'Código');
    expect(await englishOn(page)).toEqual([]);
  });

  it('the editor and what it refuses to send are Spanish', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page } = one;
    await page.locator('.wb-operation .view-lines').click({ button: 'right' });
    const menu = page.getByRole('menuitem');
    await menu.filter({ hasText: 'Paleta de comandos' }).waitFor();
    const said = (await menu.allInnerTexts()).join('\n');
    for (const text of ['Cortar', 'Copiar', 'Ejecutar la operación', 'Copiar la consulta'])
      expect(said).toContain(text);
    expect(said).not.toMatch(/\b(Cut|Copy|Change|Command|Go to|Peek|Query|Run)\b/);
    await page.keyboard.press('Escape');

    await page.locator('.wb-variables .view-lines').first().click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('x');
    await until(async () => (await page.locator('.wb-variables .view-lines').first().innerText()) === 'x');
    await play(page);
    await result(page, /No\s+se\s+envió\s+la\s+petición:\s+las\s+variables\s+no\s+son\s+JSON\s+válido/);
    expect(await englishOn(page)).toEqual([]);
  });

  it('a payment with its states, what the sandbox refuses to send, and a session that is handed over are Spanish', async () => {
    await using one = await demo.open({
      locale: 'es-MX',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const { page, context } = one;
    await openTab(page, 'StartPennyValidation');
    await play(page);
    await page.getByRole('button', { name: 'Todo lo que pasó con este pago' }).click();
    const axis = page.locator('.wb-axis');
    await axis.getByText('Comprobante Completado').waitFor();
    expect(await axis.innerText()).not.toMatch(/INITIALIZED|LIQUIDATED|PENDING|COMPLETED/);
    expect(await axis.getByTitle('COMPLETED', { exact: true }).innerText()).toBe('Completado');
    await axis.locator('summary').first().click();
    await axis.getByLabel('Dirección de tu receptor').first().fill('http://example.com/hook');
    await axis.getByRole('button', { name: 'Enviar a mi receptor' }).first().click();
    await axis.getByText('Los webhooks solo van a esta máquina').first().waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'Pestaña nueva' }).click();
    await page.getByRole('tab', { name: 'Sin nombre' }).waitFor();
    await page.getByText('Sesión', { exact: true }).click();
    await tells(page.locator('.wb-menu'), 'Enlace copiado', () =>
      page.getByRole('button', { name: 'Copiar un enlace', exact: true }).click(),
    );
    const other = await context.newPage();
    await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
    await other.getByRole('tab', { name: 'Sin nombre' }).click();
    await other.getByText('Esta operación no se ejecutó.').waitFor();
    expect(await englishOn(other, 10)).toEqual([]);
    expect(await shown(other)).not.toContain('<untitled>');
  });

  it('Ctrl-Alt-K opens the documentation and goes to its search', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page } = one;
    for (const _twice of [1, 2]) {
      await page.keyboard.press('Control+Alt+k');
      await page.waitForFunction(() => document.activeElement?.matches('.wb-pane input[role="combobox"]'));
    }
  });

  it('no text is left out', async () => {
    const sources = folder('workbench/src');
    const texts = new Set<string>();
    for (const name of await readdir(sources, { recursive: true })) {
      if (!/\.tsx?$/.test(name) || name === 'spanish.ts') continue;
      const source = await readFile(join(sources, name), 'utf8');
      const literal = /\bt\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g;
      for (const [, single, double] of source.matchAll(literal)) texts.add(single ?? double ?? '');
    }
    expect(texts.size).toBeGreaterThan(100);
    expect([...texts].filter((text) => SPANISH[text] === undefined)).toEqual([]);
    expect(TEXTS.filter((text) => spanishOf(text) === undefined)).toEqual([]);
  });
});
