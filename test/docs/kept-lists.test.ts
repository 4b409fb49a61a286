import { expect, it } from 'vitest';
import { CLIENT_LISTS } from '../../src/upstream/session/session.ts';
import { readPage } from './pages.ts';

/** Where a page names, in words, the lists whose answers are kept for all callers of a client. */
const NAMED = [
  ['docs/configuration.md', /^\| `LISTS_MAX_AGE` \|.*$/m],
  ['docs/old-answers.md', /^\| a kept answer of the list of .*?\|/m],
  ['docs/old-answers.md', /^\| with `AUTH_MODE=service` the lists of .*?\|/m],
  ['ARCHITECTURE.md', /\(`CLIENT_LISTS` of [^)]*\)/],
] as const;

it.each(NAMED)('%s names each list of a client that is kept, at %s', async (page, place) => {
  const text = place.exec(await readPage(page))?.[0] ?? '';
  for (const route of CLIENT_LISTS) {
    const [noun = ''] = route.split('/').slice(-1);
    expect(text, `${page}, ${route}`).toMatch(new RegExp(`\\b${noun}\\b`));
  }
});
