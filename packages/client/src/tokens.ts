import type { Token } from './lost.ts';
import { type Answer, within } from './source.ts';

/** A token, and what the gateway has said of it. */
export interface Shown {
  readonly text: string;
  refuse(): void;
  accept(): void;
}

/**
 * Asks for tokens, and says whether the one that was given last has been refused. That is not forgotten until another is given, or
 * the same is accepted: whatever else fails in between says nothing of it.
 */
export function tokens(token: Token, patienceMs: number): () => Promise<Shown> {
  let given: string | undefined;
  let refused: string | undefined;
  return async () => {
    const isRefused = given !== undefined && given === refused;
    const text = await within(patienceMs, (signal) => token({ refused: isRefused, signal }));
    given = text;
    return {
      text,
      refuse() {
        refused = text;
      },
      accept() {
        if (refused === text) refused = undefined;
      },
    };
  };
}

/** Reads off an answer what the gateway says of the token that was shown. @returns the answer */
export function hear<Data>(shown: Shown, answer: Answer<Data>): Answer<Data> {
  if (answer.errors?.some(({ extensions }) => extensions?.['code'] === 'UNAUTHENTICATED')) shown.refuse();
  else if (answer.data != null) shown.accept();
  return answer;
}
