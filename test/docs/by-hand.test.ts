import { expect, it } from 'vitest';
import { blocks, readPage } from './pages.ts';

/** The program of a page that no compiler of this project reads. */
async function program(language: string): Promise<string> {
  const [block] = blocks(await readPage(`docs/clients/${language}.md`), language);
  return block?.text ?? '';
}

it('the Kotlin program keeps a gap for each code that says so, before what the log still holds', async () => {
  const text = await program('kotlin');
  for (const code of ['EVENTS_GAP', 'CURSOR_INVALID']) {
    expect(text).toContain(`refusal?.get("code") == "${code}" -> credits.keepGap(cursor = refusal["oldest"]`);
  }
});

it('the Swift program does so as well, and tries what may throw', async () => {
  const text = await program('swift');
  const [, gap = ''] =
    /refusal\["code"\] as\? String == "EVENTS_GAP" \|\| refusal\["code"\] as\? String == "CURSOR_INVALID" \{\n(.*?)\n {8}\}/s.exec(
      text,
    ) ?? [];
  expect(gap).toMatch(
    /if let oldest = refusal\["oldest"\] as\? String \{\s+try await credits\.keepGap\(cursor: oldest\)/,
  );
  expect(text).toMatch(/for try await response in try client\.subscribe\(/);
});
