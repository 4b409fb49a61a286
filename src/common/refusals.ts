/**
 * The limits by which the gateway refuses a request, a body, a stream, a socket or a guess: the labels of `pasarela_refused_total`.
 * docs/layers.md says of each whom it refuses ("Every refusal").
 */
export const LIMITS = [
  'connections',
  'connections_of_address',
  'requests_of_connection',
  'body_length',
  'bodies',
  'bodies_of_sender',
  'delivery_length',
  'deliveries',
  'document',
  'fields',
  'operations',
  'operations_of_socket',
  'token_guesses',
  'key_guesses',
  'streams',
  'streams_of_address',
  'streams_of_caller',
  'streams_of_client',
  'kept',
  'kept_of_group',
  'kept_of_caller',
] as const;
export type Limit = (typeof LIMITS)[number];

/** What was full where an operation was refused: its caller's queue, or the seats of its caller, of its group, or of the process. */
export const FULL = ['queue', 'caller', 'group', 'process'] as const;
export type Full = (typeof FULL)[number];

const counts = new Map<Limit, number>(LIMITS.map((limit) => [limit, 0]));

/** Something was refused because of this limit. */
export function noteRefusal(limit: Limit): void {
  counts.set(limit, (counts.get(limit) ?? 0) + 1);
}

/** How often each limit has refused something in this process, however many gateways it holds. */
export const refusals = (): ReadonlyMap<Limit, number> => counts;
