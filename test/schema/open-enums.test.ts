import { isEnumType } from 'graphql';
import { expect, expectTypeOf, it } from 'vitest';
import type { CepUpdate, TransactionUpdate } from '../../packages/client/src/statuses.ts';
import type { Context } from '../../src/operation/context.ts';
import { cepStatus } from '../../src/resolvers/cep.ts';
import { validationStatus } from '../../src/resolvers/customer.ts';
import { type OpenEnum, undocumentedValues } from '../../src/resolvers/open-enum.ts';
import {
  transactionCategory,
  transactionStatus,
  transactionSubCategory,
} from '../../src/resolvers/transaction.ts';
import { webhookStatus, webhookType } from '../../src/resolvers/webhook.ts';
import { buildSchema } from '../../src/schema/index.ts';
import { readPage } from '../docs/pages.ts';
import { collectingLogger } from '../helpers/gateway.ts';

const schema = buildSchema();
/** What is read through each open list, by its enum. */
const READERS: Readonly<Record<string, OpenEnum<string>>> = {
  CepStatus: (raw, logger) => cepStatus(raw, { services: { logger } } as Context),
  CustomerValidationStatus: validationStatus,
  TransactionCategory: transactionCategory,
  TransactionStatus: transactionStatus,
  TransactionSubCategory: transactionSubCategory,
  WebhookStatus: webhookStatus,
  WebhookType: webhookType,
};
/** The values of an enum of the schema, without `OTHER`. */
const wordsOf = (name: string): readonly string[] => {
  const type = schema.getType(name);
  return isEnumType(type)
    ? type.getValues().flatMap((value) => (value.name === 'OTHER' ? [] : value.name))
    : [];
};
const LISTS = Object.keys(READERS).map((name) => [name, wordsOf(name)] as const);

it('each enum of the schema that has OTHER is read through an open list', () => {
  const open = Object.values(schema.getTypeMap()).filter(
    (type) => isEnumType(type) && type.getValues().some(({ name }) => name === 'OTHER'),
  );
  expect(open.map(({ name }) => name).toSorted()).toEqual(Object.keys(READERS));
  expect([...undocumentedValues().keys()].toSorted()).toEqual(Object.keys(READERS));
});

it.each(LISTS)('each value of %s in the schema is read as itself', (name, words) => {
  const lines: string[] = [];
  expect(words.length).toBeGreaterThan(1);
  for (const word of words) expect(READERS[name]?.(word, collectingLogger(lines)), word).toBe(word);
  expect(lines).toEqual([]);
});

it.each(LISTS)('docs/upstream-api.md has each value of %s', async (_name, words) => {
  const page = await readPage('docs/upstream-api.md');
  for (const word of words) expect(page).toContain(`\`${word}\``);
});

// `npm run check:types` compares these.
it('the types of the client have the values of the graph', () => {
  expectTypeOf<TransactionUpdate['transaction']['status']>().toEqualTypeOf<
    ReturnType<typeof transactionStatus>
  >();
  expectTypeOf<CepUpdate['cep']['status']>().toEqualTypeOf<ReturnType<typeof cepStatus>>();
});

it.each(['packages/sandbox/page/states.js', 'workbench/src/parts/payment-steps.ts'])(
  '%s has each state in Spanish',
  async (file) => {
    const [, table = ''] = /IN_SPANISH\b.*?\{\n(.*?)\}/s.exec(await readPage(file)) ?? [];
    const named = [...table.matchAll(/^ +([A-Z_]+): '/gm)].map(([, word]) => word);
    expect(named).toEqual(expect.arrayContaining([...wordsOf('TransactionStatus'), ...wordsOf('CepStatus')]));
  },
);
