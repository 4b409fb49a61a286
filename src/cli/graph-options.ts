import { readEnvironment } from '../app/config.ts';
import { EVENT_TYPES } from '../events/log.ts';
import { gatewayOrigin } from './address.ts';
import { UsageError } from './command.ts';
import type { GraphClient } from './graph.ts';
import { tokenOf } from './token.ts';

/** Codes of errors that waiting does not cure. */
const FINAL = [
  'EVENTS_GAP',
  'CURSOR_INVALID',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'BAD_USER_INPUT',
  'GRAPHQL_VALIDATION_FAILED',
];

/** True if waiting does not cure an error of the graph. A refused token counts if no other token can be had. */
export const isFinal = (graph: GraphClient, code: string): boolean =>
  FINAL.includes(code) && !(code === 'UNAUTHENTICATED' && graph.token.renews);

/**
 * Returns the graph that `--url` and the environment name.
 *
 * @throws CommandError without a token, UsageError for a text that is no address which `fetch` takes
 */
export function graphAt(text: string | undefined): GraphClient {
  const variables = readEnvironment();
  const token = tokenOf(variables);
  const url = text ?? `${gatewayOrigin(variables.HOST, variables.PORT)}/graphql`;
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username + parsed.password !== '') {
    const got = url.includes('@') ? 'a value' : `"${url}"`;
    throw new UsageError(
      `--url got ${got}, wants the http or https address of a graph, without user and password`,
    );
  }
  return { url, token };
}

/** Returns the types of `--types`; null for all. */
export function readTypes(text: string | undefined): readonly string[] | null {
  if (text === undefined) return null;
  const types = text.split(',').map((part) => part.trim());
  const unknown = types.find((type) => !EVENT_TYPES.some((known) => known === type));
  if (unknown !== undefined)
    throw new UsageError(`--types got "${unknown}", wants of ${EVENT_TYPES.join(', ')}`);
  return types;
}
