export { possibleTypes } from './possible-types.ts';
export { CEP_STATUS, type CepUpdate, TRANSACTION_STATUS, type TransactionUpdate } from './statuses.ts';

/** The graph's scalars for graphql-codegen's `config.scalars`. An amount stays a string: as a number it would not be exact. */
export const scalars = {
  Clabe: 'string',
  CurrencyCode: 'string',
  Cursor: 'string',
  Date: 'string',
  DateTime: 'string',
  JSON: 'unknown',
  JSONObject: 'Record<string, unknown>',
  MoneyAmount: 'string',
  URL: 'string',
} as const;

/** The same for gql.tada: `initGraphQLTada<{ introspection: introspection; scalars: Scalars }>()`. */
export interface Scalars {
  Clabe: string;
  CurrencyCode: string;
  Cursor: string;
  Date: string;
  DateTime: string;
  JSON: unknown;
  JSONObject: Record<string, unknown>;
  MoneyAmount: string;
  URL: string;
}
