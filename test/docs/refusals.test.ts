import { glob } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { VARIABLE_NAMES } from '../../src/app/variables.ts';
import { FULL, LIMITS } from '../../src/common/refusals.ts';
import { ROOT, readPage } from './pages.ts';

/** The rows of docs/layers.md, "Every refusal": a label, and the files that count it. */
async function rows() {
  const page = await readPage('docs/layers.md');
  const section = page.split('\n## ').find((part) => part.startsWith('Every refusal')) ?? '';
  return [...section.matchAll(/^\| `([a-z_]+)` \| ([^|]+) \|(.*)\|$/gm)].map(
    ([, label = '', code = '', text = '']) => ({
      label,
      files: [...code.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
      text,
    }),
  );
}

it('each limit that refuses is a row, and each row is a limit of the code', async () => {
  expect((await rows()).map(({ label }) => label)).toEqual(LIMITS);
});

it('each refusal is counted in the files that the page names, and in no other', async () => {
  const sources = new Map<string, string>();
  for await (const file of glob('src/**/*.ts', { cwd: fileURLToPath(ROOT) })) {
    const text = await readPage(file);
    if (file !== 'src/common/refusals.ts' && text.includes('noteRefusal')) sources.set(file, text);
  }
  for (const { label, files } of await rows()) {
    const counting = [...sources].filter(([, text]) => text.includes(`'${label}'`)).map(([file]) => file);
    expect(counting.sort(), label).toEqual([...files].sort());
  }
});

it('each variable of a refusal is one of the gateway', async () => {
  for (const { label, text } of await rows())
    for (const [, name] of (text.split(' | ').at(-1) ?? '').matchAll(/`([A-Z_]+)`/g))
      expect(VARIABLE_NAMES, label).toContain(name);
});

/** Words of the column *counted by*: what the refused thing is one of. */
const KEYS = /\b(process|address|client|customer|group|caller|connection|socket|request|operation)\b/;

it('each refusal says by what it is counted, and whether a payment can meet it', async () => {
  for (const { label, text } of await rows()) {
    const cells = text.split(' | ').map((cell) => cell.trim());
    expect(cells, label).toHaveLength(6);
    const [, countedBy = '', payments] = cells;
    expect(countedBy, label).toMatch(KEYS);
    expect(['yes', 'no', 'those of the socket', 'over a socket'], label).toContain(payments);
  }
});

it('each reason of RATE_LIMITED is a row, whose message and metric are those of the code', async () => {
  const page = await readPage('docs/layers.md');
  const section = page.split('\n## ').find((part) => part.startsWith('RATE_LIMITED')) ?? '';
  const reasons = [...section.matchAll(/^\| `(\w+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|/gm)];
  expect(reasons.map(([, reason]) => reason)).toEqual([...FULL, 'bodies_of_sender', 'bodies']);
  const admission = await readPage('src/graphql/plugins/admission.ts');
  const fastPath = await readPage('src/transport/http-fast-path.ts');
  for (const [, reason = '', message = '', countedAs] of reasons) {
    const isOfBodies = reason.startsWith('bodies');
    expect(isOfBodies ? fastPath : admission, reason).toMatch(new RegExp(`'${message}\\b`));
    expect(countedAs).toContain(`\`${isOfBodies ? 'limit' : 'full'}="${reason}"\``);
  }
});
