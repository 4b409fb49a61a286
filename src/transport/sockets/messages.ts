import { type CompleteMessage, MessageType, type SubscribeMessage, validateMessage } from 'graphql-ws';

/** Reads a message that begins or ends an operation. Returns undefined for any other, and for a text that is no message. */
export function operationMessage(text: string): SubscribeMessage | CompleteMessage | undefined {
  try {
    const message = validateMessage(JSON.parse(text));
    return message.type === MessageType.Subscribe || message.type === MessageType.Complete
      ? message
      : undefined;
  } catch {
    // graphql-ws reports the error, and closes the socket.
    return undefined;
  }
}

/** Returns the text by which graphql-ws learns that an operation begins. It keeps the text as long as that runs, so the payload is left out. */
export const beginning = (id: string): string =>
  JSON.stringify({ id, type: MessageType.Subscribe, payload: { query: '' } });

/** Returns the text by which it learns that the client has completed an operation. */
export const completion = (id: string): string => JSON.stringify({ id, type: MessageType.Complete });
