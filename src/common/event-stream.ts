/** The media type of a stream of server-sent events. */
export const EVENT_STREAM = 'text/event-stream';

/**
 * Whether a client takes an event stream and nothing else, by its `accept`. Who takes JSON as well may ask for a query or a mutation, as urql
 * does.
 */
export const takesStreamsAlone = (accept: string): boolean =>
  accept.includes(EVENT_STREAM) && !accept.includes('json');
