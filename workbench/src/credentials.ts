/** Names of the graph under which a secret or a token is asked for, sent or answered. An alias does not hide them: it stands beside them. */
const NAMES = /\b(token|clientSecret)\b/;
const STRING = /"(?:[^"\\]|\\.)*"/g;

interface Played {
  readonly query: string;
  readonly variables: string;
}

/** Whether an operation has to do with a secret or a token. */
export const hasCredential = ({ query, variables }: Played): boolean =>
  NAMES.test(query) || NAMES.test(variables);

/** An operation to hand over: one with a credential is its text alone, with nothing of what was sent or came of it. */
export const withoutCredentials = <T extends Played>(tab: T) =>
  hasCredential(tab)
    ? {
        ...tab,
        query: tab.query.replaceAll(STRING, '"…"'),
        variables: '',
        answer: undefined,
        stream: undefined,
        isCut: true,
      }
    : tab;
