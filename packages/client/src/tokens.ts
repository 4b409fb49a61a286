import type { Token } from './lost.ts';
import { type Answer, within } from './source.ts';

/** A token, and what the gateway has said of it. */
export interface Shown {
  readonly text: string;
  refuse(): void;
  accept(): void;
  /** Reads that off an answer. @returns the answer */
  hear<Data>(answer: Answer<Data>): Answer<Data>;
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
    const shown: Shown = {
      text,
      refuse() {
        refused = text;
      },
      accept() {
        if (refused === text) refused = undefined;
      },
      hear(answer) {
        if (answer.errors?.some(({ extensions }) => extensions?.['code'] === 'UNAUTHENTICATED')) {
          shown.refuse();
        } else if (answer.data != null) {
          shown.accept();
        }
        return answer;
      },
    };
    return shown;
  };
}
