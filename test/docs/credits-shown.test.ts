import { expect, it } from 'vitest';
import { page, snippets, typed } from './client-pages.ts';
import { readPage } from './pages.ts';

/** Tests of an app show nobody a credit. */
const TESTS = ['app-test', 'unit-test', 'gateway-test', 'refund-test'];

it('each example that shows credits selects what tells whether their money stays', async () => {
  const readme = await readPage('README.md');
  const configuration = await readPage('docs/configuration.md');
  const screen = configuration.split('\n#### A screen of credits that is fast\n')[1]?.split('\n## ')[0] ?? '';
  const programs = [...snippets, ...typed].filter(([name]) => !TESTS.includes(name)).map(([, code]) => code);
  const graphql = page.match(/^ *```graphql\n.*?^ *```$/gms) ?? [];
  // The fields of a credit: those that follow `moneyIn` or the type of its event, up to the fields of one of these.
  const shown = [...programs, ...graphql, readme, screen].flatMap((text) =>
    [
      ...text.matchAll(
        /(?:moneyIn(?:\([^)]*\))?|\.\.\. on MoneyInEvent) \{(?! nodes)[^`'"]*?\b(?:amount \{|paymentConcept)/g,
      ),
    ].map(([selection]) => selection),
  );
  expect(shown.length).toBeGreaterThan(10);
  for (const selection of shown) {
    expect(selection).toMatch(/\bdecision\b/);
    expect(selection).toMatch(/\bsubCategory\b/);
  }
});

it('what stands before a credit is as the table of what to decide says', async () => {
  const [code] = /export const note = .*?;\n/s.exec(snippets.get('app') ?? '') ?? [];
  const { note } = await import(`data:text/javascript,${encodeURIComponent(code ?? '')}`);
  const before = (decision: string, subCategory: string) => note({ decision, subCategory });
  expect(before('ACCEPTED', 'SPEI_CREDIT')).toBe('');
  expect(before('INFORMED', 'INT_CREDIT')).toBe('');
  expect(before('REJECTED', 'SPEI_CREDIT')).toBe('Goes back: ');
  expect(before('INFORMED', 'OTHER')).toBe('To be clarified: ');
});

it('the screens in TypeScript say it likewise', () => {
  const body = /=> *\n? *(decision === .*?;)/s.exec(snippets.get('app') ?? '')?.[1] ?? 'missing';
  for (const name of ['App.tsx', 'first-screen.tsx']) expect(typed.get(name), name).toContain(body);
});
