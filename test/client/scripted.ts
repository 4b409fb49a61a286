import { type Answer, type Source, typed } from '../../packages/client/src/index.ts';

interface Result {
  readonly __typename: string;
}
export const MUTATION = typed<
  { readonly pay: Result },
  {
    readonly input: {
      readonly idempotencyKey: string;
      readonly amount: string;
      readonly note?: string | null;
    };
  }
>('mutation Pay($input: PayInput!) { pay(input: $input) { __typename } }');
export const INPUT = { amount: '1.00' };

export const lost = () => Promise.reject(new Error('the network is gone'));
export const refusedCall =
  (code: string, more: object = {}) =>
  async () => ({
    errors: [{ message: code, extensions: { code, ...more } }],
  });
export const result =
  (__typename: string, more: object = {}) =>
  async () => ({ data: { pay: { __typename, ...more } } });
export const done = result('PaySuccess');

type Answers = (() => Promise<Answer<{ pay: Result }>>)[];

/**
 * A gateway that answers as it is told, one call after another, and the keys that it was shown: in payments, and in questions
 * after what became of one.
 */
export function scripted(...answers: Answers): {
  source: Source;
  keys: string[];
  /** The keys of those questions, and what they are answered. */
  looks: string[];
  states: Answers;
} {
  const keys: string[] = [];
  const looks: string[] = [];
  const states: Answers = [];
  const source = {
    query: (document: unknown, variables: { idempotencyKey: string; input: { idempotencyKey: string } }) => {
      const { input } = variables;
      if (String(document).startsWith('query PasarelaPayment(')) {
        looks.push(variables.idempotencyKey);
        return (states.shift() ?? lost)();
      }
      keys.push(input.idempotencyKey);
      return answers.length > 1 ? (answers.shift() ?? lost)() : (answers[0] ?? lost)();
    },
    subscribe: () => () => {},
  };
  // Of the documents that a source takes, these tests send one.
  return { source: source as unknown as Source, keys, looks, states };
}
