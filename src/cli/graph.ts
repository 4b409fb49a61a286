import { z } from 'zod';
import { clock } from '../common/clock.ts';
import { parseAsWritten } from '../common/long-numbers.ts';
import { CommandError, remark } from './command.ts';
import type { Token } from './token.ts';

/** Longest wait for an answer, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** The document that asks where the log ends. */
export const HEAD = '{ eventCursor }';

/** A running gateway's graph, and the tokens of the caller. */
export interface GraphClient {
  /** Address of the graph, such as `http://127.0.0.1:4000/graphql`. */
  readonly url: string;
  /** Access tokens that the gateway accepts. */
  readonly token: Token;
}

/** A GraphQL error in the form of the protocol. */
export interface GraphFailure {
  readonly message: string;
  readonly path?: readonly (string | number)[] | undefined;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** Data, and the errors of its single fields that the gateway cannot read: these are null in it. */
export interface Shown {
  readonly data: unknown;
  readonly unread: readonly GraphFailure[];
}

/** What a query has shown. */
interface Answered extends Shown {
  /** When the earliest REST call had left whose answer it shows, in ms after the query: below zero where that was read before, otherwise 0. */
  readonly readMs: number;
}

const Call = z.object({ began: z.number(), identifies: z.boolean() });

const Result = z.object({
  // Absent where an operation was refused before it began.
  data: z.unknown().optional(),
  errors: z
    .array(
      z.object({
        message: z.string(),
        path: z.array(z.union([z.string(), z.number()])).optional(),
        extensions: z.record(z.string(), z.unknown()).optional(),
      }),
    )
    .optional(),
  // Absent where the gateway does not say.
  extensions: z
    .object({ upstream: z.array(Call).catch([]) })
    .optional()
    .catch(undefined),
});

/**
 * Sends one query. If the token is refused and another one can be had, sends it once more with that.
 *
 * @returns its `data`, as it came
 * @throws CommandError if the gateway cannot be asked, GraphError if it answers with an error
 */
export async function query(graph: GraphClient, document: string, variables: object): Promise<unknown> {
  return (await queryWhole(graph, document, variables)).data;
}

/** The same, with when it was read. @throws as {@link query} */
export async function queryWhole(graph: GraphClient, document: string, variables: object): Promise<Answered> {
  const shown = await queryShown(graph, document, variables);
  if (shown.unread[0] !== undefined) throw new GraphError(shown.unread[0]);
  return shown;
}

/**
 * The same for what is stored, such as events: a field that cannot be read is no better when it is asked for again, and must not
 * hold up the rest.
 *
 * @throws CommandError if the gateway cannot be asked, GraphError if it answers with any other error
 */
export async function queryShown(graph: GraphClient, document: string, variables: object): Promise<Answered> {
  const token = await tokenFor(graph);
  try {
    return await ask(graph.url, token, document, variables);
  } catch (error) {
    const isRefused = error instanceof GraphError && error.code === 'UNAUTHENTICATED';
    if (!isRefused || !graph.token.renews) throw error;
    return ask(graph.url, await tokenFor(graph, token), document, variables);
  }
}

/** Returns a token, from a source that may be away for a while, as the gateway may. */
const tokenFor = ({ token }: GraphClient, refused?: string): Promise<string> =>
  token.get(refused).catch((cause: unknown) => {
    throw cause instanceof CommandError ? new GatewayAwayError(cause.message, { cause }) : cause;
  });

async function ask(url: string, token: string, document: string, variables: object): Promise<Answered> {
  let answer: unknown;
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: document, variables }),
      signal: clock.timeoutSignal(TIMEOUT_MS),
    });
    answer = parseAsWritten(await response.text());
  } catch (cause) {
    throw new GatewayAwayError(
      `No gateway answers at ${url}. Name another with --url, or look with pasarela doctor.`,
      { cause },
    );
  }
  const { data, errors = [], extensions } = Result.safeParse(answer).data ?? {};
  // A proxy may answer in JSON too.
  if (data == null && errors.length === 0)
    throw new GatewayAwayError(`What answers at ${url} is not GraphQL.`);
  if (errors[0] !== undefined && !areUnread(data, errors)) throw new GraphError(errors[0]);
  const calls = extensions?.upstream.filter(({ identifies }) => !identifies) ?? [];
  return { data, unread: errors, readMs: Math.min(0, ...calls.map(({ began }) => began)) };
}

/** Codes of a field that is null because the service has sent something else there, and of such errors that are not listed. */
const UNREAD: readonly unknown[] = ['UPSTREAM_INVALID', 'MORE_ERRORS'];

/** True if errors say no more than that single fields of what is shown cannot be read. */
export function areUnread(data: unknown, failures: readonly GraphFailure[]): boolean {
  const isWhole =
    typeof data === 'object' && data !== null && Object.values(data).every((field) => field !== null);
  return isWhole && failures.every(({ extensions }) => UNREAD.includes(extensions?.['code']));
}

/** Says which fields of events could not be read. */
export function tellUnread(
  failures: readonly GraphFailure[],
  events: readonly { readonly id: string }[],
): void {
  for (const failure of failures) {
    const { path = [] } = failure;
    const event = events[Number(path.find((step) => typeof step === 'number') ?? 0)];
    const which = path.length === 0 ? '' : `${event?.id} has null as ${path.at(-1)}, which cannot be read. `;
    remark(which + describe(failure));
  }
}

/** Returns an error as text, with its code, and with the cursors to begin again from if it has any. */
export function describe({ message, extensions = {} }: GraphFailure): string {
  const { code, oldest, head } = extensions;
  const start =
    typeof oldest === 'string'
      ? `\nStart again with --after ${oldest} (oldest retained) or ${String(head)} (newest).`
      : '';
  return `${String(code ?? 'ERROR')}: ${message}${start}`;
}

/** No gateway answers at the address, or no token for it can be had. */
export class GatewayAwayError extends CommandError {}

/** The gateway has answered with an error. */
export class GraphError extends CommandError {
  /** Its `extensions.code`; `ERROR` if it has none. */
  readonly code: string;

  constructor(failure: GraphFailure) {
    super(describe(failure));
    this.code = String(failure.extensions?.['code'] ?? 'ERROR');
  }
}
