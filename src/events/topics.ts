import type { StoredEvent } from './log.ts';

/**
 * Tells which followers an event concerns. A topic is a text that an event has and that followers wait for, such as the type
 * or an owner's id. The feed hands an event to the followers of its topics, and to no others.
 */
export interface EventTopics {
  /** The topics that the event itself names. */
  of(event: StoredEvent): readonly string[];
  /**
   * Returns the function by which one reader of a client's events asks for further topics, with a patience of its own with a service
   * that fails. A reader of history is one; all live followers of a client together are one.
   */
  asker(clientId: string): TopicAsker;
}

/**
 * Asks for the topics that an event does not name itself; returns undefined if it can have none. What it throws ends the
 * streams that wait for such topics.
 */
export type TopicAsker = (event: StoredEvent) => Promise<readonly string[]> | undefined;

/** An event's only topic is its type. */
export const typeTopics: EventTopics = { of: ({ type }) => [type], asker: () => () => undefined };
