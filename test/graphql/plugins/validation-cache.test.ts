import { parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { useValidationCache } from '../../../src/graphql/plugins/validation-cache.ts';
import { buildSchema } from '../../../src/schema/index.ts';
import { startGateway } from '../../helpers/gateway.ts';

const schema = buildSchema();

/** How often a document is validated when it is asked a number of times. */
function validations(text: string, times: number): { readonly made: number; readonly errors: number[] } {
  const hook = useValidationCache().onValidate;
  const params = { schema, documentAST: parse(text) };
  let made = 0;
  const errors: number[] = [];
  for (let time = 0; time < times; time += 1) {
    let result: readonly unknown[] | undefined;
    const setResult = (known: readonly unknown[]): void => {
      result = known;
    };
    // Only these members of the hook's payload are used.
    const payload = { params, setResult } as unknown as Parameters<NonNullable<typeof hook>>[0];
    const after = hook?.(payload);
    if (result === undefined) {
      made += 1;
      result = validate(schema, params.documentAST);
      after?.({ result } as unknown as Parameters<NonNullable<typeof after>>[0]);
    }
    errors.push(result.length);
  }
  return { made, errors };
}

it('validates a document once, whether it is valid or not', () => {
  expect(validations('{ client { id } }', 3)).toEqual({ made: 1, errors: [0, 0, 0] });
  expect(validations('{ client { nonsense, more } }', 3)).toEqual({ made: 1, errors: [2, 2, 2] });
});

it.each([
  ['an unknown field', '{ client { nonsense } }', 'GRAPHQL_VALIDATION_FAILED'],
  [
    'too much',
    `{ ${Array.from({ length: 400 }, (_, i) => `a${i}: client { id }`).join(' ')} }`,
    'TOO_COMPLEX',
  ],
])('refuses %s in the same words, however often it is sent', async (_what, query, code) => {
  await using gateway = await startGateway();
  const words = new Set<string>();
  for (let time = 0; time < 3; time += 1) {
    const { errors = [], status } = await gateway.query(query);
    words.add(
      JSON.stringify([status, ...errors.map(({ message, extensions }) => [message, extensions?.['code']])]),
    );
  }
  expect(words.size).toBe(1);
  expect([...words][0]).toContain(`"${code}"`);
});
