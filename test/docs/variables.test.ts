import { expect, it } from 'vitest';
import { readPage } from './pages.ts';

/** The names of the variables, as the one schema in `src/app/config.ts` lists them. */
async function variables(): Promise<readonly string[]> {
  const [, schema = ''] =
    /const variables = z\.object\(\{(.*?)^\}\);/ms.exec(await readPage('src/app/config.ts')) ?? [];
  return [...schema.matchAll(/^ {2}([A-Z_]+):/gm)].map(([, name = '']) => name);
}

it('the README explains every variable, and no other', async () => {
  const page = await readPage('README.md');
  const [, table = ''] = /^\| variable \|.*?\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const names = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([A-Z_]+)`/g)]);
  const explained = names.map(([, name]) => name);
  expect(explained.length).toBeGreaterThan(30);
  expect(explained.sort()).toEqual([...(await variables())].sort());
});

it.each(['docs/operations.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'])(
  '%s names no variable that the gateway does not read',
  async (name) => {
    const known = await variables();
    const page = await readPage(name);
    // Others read these: OpenTelemetry's SDK.
    const foreign = ['OTEL_SERVICE_NAME', 'OTEL_RESOURCE_ATTRIBUTES', 'OTEL_EXPORTER_OTLP_HEADERS'];
    const prefix =
      /^(UPSTREAM|AUTH|REDIS|DATA|EVENTS|PUBLIC|WEBHOOK|LOG|SANDBOX|OTEL|PASARELA|TRUSTED|LIMIT|REUSE)_/;
    const codes = ['EVENTS_GAP', 'UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT'];
    for (const [, variable = ''] of page.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)) {
      if (prefix.test(variable) && ![...foreign, ...codes].includes(variable))
        expect(known).toContain(variable);
    }
  },
);
