import { readFileSync } from 'node:fs';
import { buildClientSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema } from 'graphql';
import { expect, it } from 'vitest';
import { startGateway } from '../helpers/gateway.ts';

it('a gateway that runs tells of itself what `schema.graphql` says', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const query = getIntrospectionQuery({
    specifiedByUrl: true,
    inputValueDeprecation: true,
    oneOf: true,
    schemaDescription: true,
  });
  const { data, errors } = await gateway.query(query);
  expect(errors).toBeUndefined();
  const told = printSchema(lexicographicSortSchema(buildClientSchema(data)));
  expect(`${told}\n`).toBe(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
});
