import { MessageType, type SubscribePayload, validateMessage } from 'graphql-ws';

/** Characters of a message. graphql-ws keeps the text of one that subscribes as long as its operation runs. */
const LONG = 512;

/** A message as graphql-ws is given it. */
export interface Taken {
  readonly text: string;
  /** What the message asks for, where its text does not say. */
  readonly payload?: SubscribePayload;
}

/** Takes out of a long message what it asks for, so that nobody keeps its text. */
export function shortened(text: string): Taken {
  if (text.length <= LONG) return { text };
  try {
    const message = validateMessage(JSON.parse(text));
    if (message.type !== MessageType.Subscribe) return { text };
    const { id, type, payload } = message;
    return { text: JSON.stringify({ id, type, payload: { query: '' } }), payload };
  } catch {
    // graphql-ws says what is wrong with it, and closes the socket.
    return { text };
  }
}
