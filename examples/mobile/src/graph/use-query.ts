import { type Problem, Refused, type Source, type TypedDocument } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';

export interface Query<Data> {
  readonly data: Data | undefined;
  /** What the gateway refused, or why it gave no answer; undefined while there is no problem. */
  readonly problem: unknown;
  /** All that the gateway refused, also beside the data. */
  readonly errors?: readonly Problem[] | undefined;
  again(): void;
}

/** How long to wait before a gateway that gave no answer is asked again, in milliseconds. */
const AGAIN_MS = 1_000;

/** Reads once; again when asked to, and where no answer came. */
export function useQuery<Data, Variables>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
): Query<Data> {
  const [state, setState] = useState<Omit<Query<Data>, 'again'>>({ data: undefined, problem: undefined });
  const [turn, setTurn] = useState(0);
  const text = JSON.stringify(variables);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn is a reason to read again.
  useEffect(() => {
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // It was made of variables just above.
    source.query(document, JSON.parse(text) as Variables, left.signal).then(
      ({ data, errors }) =>
        setState({ data: data ?? undefined, problem: errors?.[0] && new Refused(errors[0]), errors }),
      (problem: unknown) => {
        if (left.signal.aborted) return;
        setState({ data: undefined, problem });
        timer = setTimeout(() => setTurn((before) => before + 1), AGAIN_MS);
      },
    );
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [source, document, text, turn]);
  return { ...state, again: useCallback(() => setTurn((before) => before + 1), []) };
}
