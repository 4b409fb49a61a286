import { access } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ROOT, readPage } from './pages.ts';

/** A rule's row: its identifier, its sentences, and the tests that hold it. */
const RULE = /^\| ([A-Z])(\d+) \| .+ \| (.+) \|$/gm;

it('every rule of PROTOCOL.md has its own identifier, in order, and names tests that exist', async () => {
  const rules = [...(await readPage('PROTOCOL.md')).matchAll(RULE)];
  expect(rules.length).toBeGreaterThan(40);
  const last = new Map<string, number>();
  for (const [, section = '', number, held = ''] of rules) {
    const rule = `${section}${number}`;
    expect(Number(number), rule).toBeGreaterThan(last.get(section) ?? 0);
    last.set(section, Number(number));
    const tests = [...held.matchAll(/`([^`]+)`/g)].map(([, test = '']) => test);
    expect(held, rule).toBe(tests.map((test) => `\`${test}\``).join(' '));
    for (const test of tests)
      await expect(access(new URL(`test/${test}`, ROOT)), rule).resolves.toBeUndefined();
  }
});

it('says of a key and of states that are followed the same in PROTOCOL.md and in the schema', async () => {
  const rules = new Map(
    [...(await readPage('PROTOCOL.md')).matchAll(/^\| ([A-Z]\d+) \| (.+)$/gm)].map(([, rule, text]) => [
      rule,
      text,
    ]),
  );
  const schema = await readPage('schema.graphql');
  const keys = [...schema.matchAll(/Names this intent to pay: any string of .*/g)].map(([text]) => text);
  expect(keys).toHaveLength(4);
  for (const text of [...keys, rules.get('P2')]) expect(text).toContain('8 to 128 printable characters');
  const followed = [...schema.matchAll(/^.*its state now, then every change.*|^.*one transaction now.*/gm)];
  expect(followed).toHaveLength(2);
  for (const [text] of followed) expect(text).toMatch(/[Ww]ithin one subscription/);
  expect(rules.get('C6')).toContain('within one subscription');
});
