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

it('the Kotlin and Swift programs keep the first cursor before they subscribe, and take null for none', async () => {
  const kotlin = await program('kotlin');
  expect(kotlin).toContain('credits.lastCursor() ?: eventCursor().also { credits.keepFirst(it) }');
  expect(kotlin).toContain('Optional.present(after)');
  expect(kotlin).toMatch(
    /suspend fun eventCursor\(\): String \{\s+while \(true\) \{\s+.*\?\.let \{ return it \}/,
  );
  const swift = await program('swift');
  expect(swift).toMatch(
    /after = try await firstCursor\(\)\s+(\/\/.*\s+)?try await credits\.keepFirst\(after\)/,
  );
  expect(swift).toContain('after: .some(after)');
  expect(swift).toMatch(/cachePolicy: \.networkOnly\)\s+guard let cursor = .*\?\.eventCursor else \{ throw /);
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
