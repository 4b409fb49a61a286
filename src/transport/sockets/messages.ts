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
}

/** Takes the payload out of a long `subscribe` message, so that the text that is kept is short. */
export function shortened(text: string): Taken {
  if (text.length <= LONG) return { text };
  try {
    const message = validateMessage(JSON.parse(text));
    if (message.type !== MessageType.Subscribe) return { text };
    const { id, type, payload } = message;
    return { text: JSON.stringify({ id, type, payload: { query: '' } }), payload };
  } catch {
    // graphql-ws reports the error, and closes the socket.
    return { text };
  }
}
