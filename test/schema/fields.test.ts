import { getNamedType, getNullableType, isLeafType, isListType, isObjectType } from 'graphql';
import { expect, it } from 'vitest';
import { buildSchema } from '../../src/schema/index.ts';

/** Fields that do not bear the name of the part that they show, written as GraphQL writes names. */
const RENAMED: readonly string[] = [
  ...['Account.clabe: clabeNumber', 'Account.status: accountStatus', 'Account.type: accountType'],
  ...['Cep.rawStatus: status', 'Cep.url: cepUrl', 'CepEvent.rawStatus: status'],
  'ClabeDetail.clabe: clabeNumber',
  ...['Customer.alias: customerAlias', 'Customer.rawValidationStatus: customerValidationStatus'],
  'Customer.status: customerStatus',
  ...[
    'LegalRepresentative.email: legalRepresentativeEmail',
    'LegalRepresentative.name: legalRepresentativeName',
  ],
  ...[
    'LegalRepresentative.phone: legalRepresentativePhone',
    'LegalRepresentative.rfc: legalRepresentativeRfc',
  ],
  'MoneyInEvent.rawSubCategory: subCategory',
  ...['Transaction.rawCategory: category', 'Transaction.rawStatus: transactionStatus'],
  'Transaction.rawSubCategory: subCategory',
  ...['TransactionInstrument.alias: instrumentAlias', 'TransactionInstrument.instrumentId: id'],
  ...['TransactionInstrument.status: instrumentStatus', 'TransactionInstrument.type: instrumentType'],
  ...['Webhook.rawStatus: webhookStatus', 'Webhook.rawType: webhookType'],
];

/** The part of an answer that a field shows as it came; undefined where it makes something of it. */
function partShown(resolve: (...given: unknown[]) => unknown): string | undefined {
  const asked = new Set<unknown>();
  // An answer of which each part holds its own name.
  const named = new Proxy(
    {},
    {
      get(_target, part) {
        asked.add(part);
        return typeof part === 'string' ? part : undefined;
      },
    },
  );
  try {
    const shown = resolve(named, {}, { services: { utcOffset: '-06:00' } });
    // What asks others finds nobody here.
    if (shown instanceof Promise) shown.catch(() => undefined);
    return typeof shown === 'string' && asked.has(shown) ? shown : undefined;
  } catch (error) {
    // A name is no date: the error says of which part.
    return /^The service sent a "(\w+)"/.exec(error instanceof Error ? error.message : '')?.[1];
  }
}

it('a field shows the part of the answer that bears its name, but for those listed', () => {
  let same = 0;
  const renamed: string[] = [];
  for (const type of Object.values(buildSchema().getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const { name, type: of, resolve, args } of Object.values(type.getFields())) {
      if (resolve === undefined || args.length > 0 || !isLeafType(getNullableType(of))) continue;
      // graphql-js hands more to a resolver than these look at.
      const part = partShown(resolve as (...given: unknown[]) => unknown);
      if (part?.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) === name) same += 1;
      else if (part !== undefined) renamed.push(`${type.name}.${name}: ${part}`);
    }
  }
  expect(renamed.toSorted()).toEqual(RENAMED.toSorted());
  expect(same).toBeGreaterThan(50);
});

it('a list that takes a page size is a connection, as the cost of any other list does not look at its arguments', () => {
  const paged: string[] = [];
  for (const type of Object.values(buildSchema().getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const { name, type: of, args } of Object.values(type.getFields())) {
      if (!args.some((argument) => argument.name === 'first' || argument.name === 'last')) continue;
      const told = `${type.name}.${name} takes a page size and is no Connection: complexity.ts counts it 100`;
      expect(getNamedType(of).name, told).toMatch(/Connection$/);
      expect(isListType(getNullableType(of)), told).toBe(false);
      paged.push(`${type.name}.${name}`);
    }
  }
  expect(paged).toContain('Client.accounts');
});
