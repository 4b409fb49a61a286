import type { Source, TypedDocument } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';

export interface Query<Data> {
  readonly data: Data | undefined;
  /** In the gateway's words, or empty where it gave no answer. */
  readonly problem: string | undefined;
  again(): void;
}

/** Reads once, and again when asked to. */
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
    // It was made of variables just above.
    source.query(document, JSON.parse(text) as Variables, left.signal).then(
      ({ data, errors }) => setState({ data: data ?? undefined, problem: errors?.[0]?.message }),
      () => left.signal.aborted || setState({ data: undefined, problem: '' }),
    );
    return () => left.abort();
  }, [source, document, text, turn]);
  return { ...state, again: useCallback(() => setTurn((before) => before + 1), []) };
}
