import type { StoredEvent } from './log.ts';

/**
 * Tells whom an event concerns. A topic is a text that an event has and that followers wait for, such as the type and an
 * owner's id: the feed hands an event to the followers of its topics, and to nobody else.
 */
export interface EventTopics {
  /** The topics that the event itself names. */
  of(event: StoredEvent): readonly string[];
  /**
   * The topics that have to be asked for; undefined where the event has none. The same question at the same time is asked
   * once.
   *
   * @throws what ends the streams that wait for such topics.
   */
  askedFor(clientId: string, event: StoredEvent): Promise<readonly string[]> | readonly string[] | undefined;
}

/** Events by their type alone. */
export const typeTopics: EventTopics = { of: ({ type }) => [type], askedFor: () => undefined };
