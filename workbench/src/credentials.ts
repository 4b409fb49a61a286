import type { Operation } from './net/result.ts';

/** Names of the graph under which a secret or a token is asked for, sent or answered. An alias does not hide them: it stands beside them. */
const NAMES = /\b(token|clientSecret)\b/;
const STRING = /"(?:[^"\\]|\\.)*"/g;

interface Text {
  readonly query: string;
  readonly variables: string;
}

/** A tab, whose text may have been changed since its answer and its stream were asked for. */
interface Tab extends Text {
  readonly answer?: { readonly hasCredential: boolean } | undefined;
  readonly stream?: { readonly operation: Operation } | undefined;
}

/** Whether an operation has to do with a secret or a token. */
export const hasCredential = ({ query, variables }: Text): boolean =>
  NAMES.test(query) || NAMES.test(variables);

/** Whether what is sent has to do with a secret or a token. */
export const sendsCredential = ({ query, variables = {} }: Operation): boolean =>
  hasCredential({ query, variables: JSON.stringify(variables) });

const playedCredential = ({ answer, stream }: Tab): boolean =>
  answer?.hasCredential === true || (stream !== undefined && sendsCredential(stream.operation));

/**
 * An operation to hand over: one with a credential is its text alone, with nothing of what was sent or came of it. So is one whose
 * text had a credential when it was played.
 */
export const withoutCredentials = <T extends Tab>(tab: T) =>
  hasCredential(tab) || playedCredential(tab)
    ? {
        ...tab,
        query: tab.query.replaceAll(STRING, '"…"'),
        variables: '',
        answer: undefined,
        stream: undefined,
        isCut: true,
      }
    : tab;
