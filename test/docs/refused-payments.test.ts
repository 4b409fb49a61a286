import { expect, it } from 'vitest';
import { memoryIntents, pay } from '../../packages/client/src/index.ts';
import { LIMITS } from '../../src/common/refusals.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { done, INPUT, MUTATION, refusedCall, scripted } from '../client/scripted.ts';
import { recordingLogger } from '../helpers/events.ts';
import { readPage } from './pages.ts';

/** The rows of docs/payments.md, "A payment was refused with a code". */
async function rows() {
  const page = await readPage('docs/payments.md');
  const section =
    page.split('\n## ').find((part) => part.startsWith('A payment was refused with a code')) ?? '';
  const table = [...section.matchAll(/^\| (.*) \|$/gm)].slice(2);
  return table.map(([, row = '']) => {
    const [codes = '', moved = '', , does = '', seen = '', files = ''] = row.split(' | ');
    return {
      codes: [...codes.matchAll(/`([A-Z_]+)`/g)].map(([, code = '']) => code),
      moved,
      does,
      seen,
      files,
    };
  });
}

/** Every code of docs/graph.md, with GraphQL's own two, but those that come to no payment. */
async function listed(): Promise<string[]> {
  const page = await readPage('docs/graph.md');
  const codes = [...(page.split('\n## Error codes\n')[1] ?? '').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(
    ([, code = '']) => code,
  );
  const all = [...codes, 'GRAPHQL_PARSE_FAILED', 'GRAPHQL_VALIDATION_FAILED'];
  return all.filter((code) => code !== 'EVENTS_GAP' && code !== 'CURSOR_INVALID');
}

it('each code that a payment may be refused with has a row, and no other has', async () => {
  const codes = (await rows()).flatMap((row) => row.codes);
  expect([...new Set(codes)].sort()).toEqual((await listed()).sort());
});

it('`pay` does with each code what its row says', async () => {
  for (const { codes, moved, does } of await rows())
    for (const code of codes) {
      const once = await pay(scripted(refusedCall(code)).source, MUTATION, INPUT, {
        store: memoryIntents(),
        patienceMs: 0,
      });
      expect(once.status, code).toBe(moved === 'no' ? 'refused' : 'unknown');
      const again = await pay(scripted(refusedCall(code), done).source, MUTATION, INPUT, {
        store: memoryIntents(),
      });
      expect(again.status, code).toBe(does.startsWith('asks again') ? 'done' : 'refused');
    }
});

it('each file that a row names decides on one of its codes, and each metric of a row is one of the gateway', async () => {
  const metrics = await createMetrics(() => new Map(), recordingLogger()).registry.getMetricsAsJSON();
  const names = new Set(metrics.map(({ name }) => name));
  for (const { codes, files, seen } of await rows()) {
    const texts = await Promise.all(
      [...files.matchAll(/`(src\/[^`]+)`/g)].map(([, file = '']) => readPage(file)),
    );
    if (codes.length > 0)
      expect(
        texts.some((text) => codes.some((code) => text.includes(code))),
        String(codes),
      ).toBe(true);
    for (const [, metric] of seen.matchAll(/`(pasarela_[a-z_]+)`/g))
      expect(names, String(codes)).toContain(metric);
    if (seen.includes('token_guesses')) expect(LIMITS).toContain('token_guesses');
  }
});
