import { Kind, parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { complexityOf } from '../../src/graphql/documents/complexity.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from './pages.ts';

const schema = buildSchema();

function complexity(text: string) {
  const document = parse(text);
  expect(validate(schema, document)).toEqual([]);
  const [operation] = document.definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) throw new Error('it is an operation');
  return complexityOf(schema, new Map(), operation, {});
}

const costOf = (text: string): number => complexity(text).cost;

it('each selection of the page costs what its row says', async () => {
  const page = await readPage('docs/configuration.md');
  const section = page.split('\n### ').find((part) => part.startsWith('What an operation costs')) ?? '';
  const whole = /Of `([^`]+)`/.exec(section)?.[1] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` \| ([\d,]+) \|/gm)];
  expect(rows).toHaveLength(6);
  for (const [, selection = '', cost = ''] of rows)
    expect(costOf(whole.replace('…', selection)), selection).toBe(Number(cost.replace(',', '')));
  const dearest = complexity(whole.replace('…', rows.at(-1)?.[1] ?? ''));
  expect(section).toContain(
    `cost is ${dearest.cost}; at most 10000 is allowed. Its pages multiply each other: ${dearest.pages.join(' × ')}. `,
  );
  const cheaper =
    rows.at(-1)?.[1]?.replaceAll('instrument { alias bank { name } }', 'instrumentId alias') ?? '';
  const [, saved] = /it costs ([\d,]+) and takes/.exec(section) ?? [];
  expect(costOf(whole.replace('…', cheaper))).toBe(Number(saved?.replace(',', '')));
  const [, unsized = '', cost] = /Without a size `([^`]+)` costs ([\d,]+)/.exec(section) ?? [];
  expect(costOf(`{ client { ${unsized} } }`)).toBe(Number(cost?.replace(',', '')));
});

it('each page of transactions costs what its row says', async () => {
  const page = await readPage('ARCHITECTURE.md');
  const [, whole = '', rows = ''] =
    /A page of 50 for the whole client, `([^`]+)`(.*?)\n\n\| field/s.exec(page) ?? [];
  const costs = [...rows.matchAll(/^\| `([^`]+)`[^|]* \| (\d+) \|/gm)];
  expect(costs).toHaveLength(2);
  for (const [, selection = '', cost] of costs)
    expect(costOf(whole.replace('…', selection)), selection).toBe(Number(cost));
});

it('each request of the fast screen costs what its row says', async () => {
  const page = await readPage('docs/configuration.md');
  const section = page.split('\n#### A screen of credits that is fast\n')[1] ?? '';
  const rows = [...section.matchAll(/^\| [^|`]+ \| `([^`]+)`[^|]* \| ([\d,]+) \| (\d)/gm)];
  expect(rows.map(([, , , calls]) => calls)).toEqual(['1', '1', '0']);
  for (const [, text = '', cost] of rows) expect(costOf(text), text).toBe(Number(cost));
});
