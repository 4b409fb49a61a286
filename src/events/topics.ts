import type { StoredEvent } from './log.ts';

/**
 * Tells whom an event concerns. A topic is a text that an event has and that followers wait for, such as the type and an
 * owner's id: the feed hands an event to the followers of its topics, and to nobody else.
 */
export interface EventTopics {
  /** The topics that the event itself names. */
  of(event: StoredEvent): readonly string[];
  /** Makes what one reader of a client's events asks with: each waits on its own account for a service that fails. */
  asker(clientId: string): TopicAsker;
}

/**
 * Asks for the topics that an event does not name itself; undefined where it can have none. It throws what ends the streams
 * that wait for such topics.
 */
export type TopicAsker = (event: StoredEvent) => Promise<readonly string[]> | undefined;

/** Events by their type alone. */
export const typeTopics: EventTopics = { of: ({ type }) => [type], asker: () => () => undefined };
