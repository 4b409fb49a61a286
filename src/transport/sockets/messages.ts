import { MessageType, type SubscribePayload, validateMessage } from 'graphql-ws';

/**
 * Messages with more characters are shortened, because graphql-ws keeps the text of a `subscribe` as long as its operation
 * runs.
 */
const LONG = 512;

/** A message in the form that graphql-ws gets. */
export interface Taken {
  readonly text: string;
  /** The payload that was taken out of the text; undefined if the text still has it. */
  readonly payload?: SubscribePayload;
  /** What it is, and of which operation, where it is a `subscribe` or a `complete`. */
  readonly type?: MessageType;
  readonly id?: string;
}

/** Reads a message, and takes the payload out of a long `subscribe`, so that the text that is kept is short. */
export function taken(text: string): Taken {
  try {
    const message = validateMessage(JSON.parse(text));
    if (message.type !== MessageType.Subscribe && message.type !== MessageType.Complete) return { text };
    const { type, id } = message;
    if (type === MessageType.Complete || text.length <= LONG) return { text, type, id };
    const { payload } = message;
    return { text: JSON.stringify({ id, type, payload: { query: '' } }), payload, type, id };
  } catch {
    // graphql-ws reports the error, and closes the socket.
    return { text };
  }
}
