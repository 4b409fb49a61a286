import { connect } from './connect.ts';
import { fieldOf } from './documents.ts';
import type { Sink, Source, TypedDocument } from './source.ts';

/** The name under which an operation's context says that its subscriber comes back by itself. */
export const FOLLOWED = 'pasarelaFollowed';

/** What stands there: called with what checks the connection. @returns is called once the gateway has taken that. */
export type Followed = (check: () => void) => () => void;

/**
 * What a GraphQL library subscribes with. Where `follow` or `watch` asks through it, one attempt; for everybody else, a
 * subscription that resumes by itself: `after` moves on with the cursor of what has come.
 */
export function subscribeFor<Data, Variables extends object>(
  source: Source,
  document: TypedDocument<Data, Variables>,
  variables: Variables,
  followed: unknown,
  sink: Sink<Data>,
): () => void {
  if (typeof followed === 'function') {
    const opened = (followed as Followed)(() => source.check?.());
    return source.subscribe(document, variables, { ...sink, opened });
  }
  let after: string | undefined;
  const resumes = 'after' in variables;
  const connection = connect(
    source,
    document,
    () => (after === undefined ? variables : { ...variables, after }),
    !resumes,
    {
      opened: () => sink.opened(),
      next(data) {
        const { cursor } = fieldOf(data) as { readonly cursor?: string };
        if (resumes && cursor !== undefined) after = cursor;
        sink.next({ data });
      },
      lost() {},
      ended(refusal) {
        if (refusal !== undefined) sink.next({ errors: [refusal] });
        sink.ended();
      },
    },
  );
  return () => connection.close();
}
