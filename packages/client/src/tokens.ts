import type { Token } from './lost.ts';
import { type Answer, type Problem, within } from './source.ts';

/** A token, and whether the gateway has refused it. */
export interface Shown {
  readonly text: string;
  refuse(): void;
  accept(): void;
}

/**
 * Returns a function that asks for tokens, and says if the last one has been refused. That stays until another one is given,
 * or until the same one is accepted by a request that was sent after the refusal: other failures in between do not change it.
 */
export function tokens(token: Token, patienceMs: number): () => Promise<Shown> {
  let given: string | undefined;
  let refused: string | null = null;
  let refusals = 0;
  return async () => {
    const isRefused = given === refused;
    const text = await within(patienceMs, (signal) => token({ refused: isRefused, signal }));
    given = text;
    const before = refusals;
    return {
      text,
      refuse() {
        refused = text;
        refusals += 1;
      },
      accept() {
        if (refused === text && refusals === before) refused = null;
      },
    };
  };
}

/** Notes what an answer says of the token that was sent. If another header is refused, the error names that. @returns the answer */
export function hear<Data>(shown: Shown, answer: Answer<Data>): Answer<Data> {
  const isRefused = ({ extensions: { code, header } = {} }: Problem) => code === 'UNAUTHENTICATED' && !header;
  if (answer.errors?.some(isRefused)) shown.refuse();
  else if (answer.data != null) shown.accept();
  return answer;
}
