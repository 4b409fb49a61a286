import { Kind, parse } from 'graphql';
import { expect, it } from 'vitest';
import { complexityOf } from '../../src/graphql/documents/complexity.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from './pages.ts';

const schema = buildSchema();

function costOf(text: string): number {
  const [operation] = parse(text).definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('it is an operation');
  return complexityOf(schema, new Map(), operation, {}).cost;
}

it('each selection of the page costs what its row says', async () => {
  const page = await readPage('docs/configuration.md');
  const section = page.split('\n### ').find((part) => part.startsWith('What an operation costs')) ?? '';
  const whole = /Of `([^`]+)`/.exec(section)?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| ([\d,]+) \|/gm)];
  expect(rows).toHaveLength(5);
  for (const [, selection = '', cost = ''] of rows)
    expect(costOf(whole.replace('…', selection)), selection).toBe(Number(cost.replace(',', '')));
  const [, unsized = '', cost] = /Without a size `([^`]+)` costs ([\d,]+)/.exec(section) ?? [];
  expect(costOf(`{ client { ${unsized} } }`)).toBe(Number(cost?.replace(',', '')));
});
