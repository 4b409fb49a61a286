import {
  type CompleteMessage,
  type ConnectionInitMessage,
  MessageType,
  type PingMessage,
  type PongMessage,
  type SubscribeMessage,
  validateMessage,
} from 'graphql-ws';

type ClientMessage = ConnectionInitMessage | PingMessage | PongMessage | SubscribeMessage | CompleteMessage;

/** Reads a message of a client. Returns undefined for one that only a server sends, and for a text that is no message. */
export function clientMessage(text: string): ClientMessage | undefined {
  try {
    const message = validateMessage(JSON.parse(text));
    switch (message.type) {
      case MessageType.ConnectionAck:
      case MessageType.Next:
      case MessageType.Error:
        return undefined;
      default:
        return message;
    }
  } catch {
    return undefined;
  }
}

/** Returns the text by which graphql-ws learns that an operation begins. It keeps the text as long as that runs, so the payload is left out. */
export const beginning = (id: string): string =>
  JSON.stringify({ id, type: MessageType.Subscribe, payload: { query: '' } });

/** Returns the text by which it learns that the client has completed an operation. */
export const completion = (id: string): string => JSON.stringify({ id, type: MessageType.Complete });
