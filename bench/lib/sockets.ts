import { randomBytes, randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';

const OPCODE = { text: 0x1, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** How many sockets are opened at once. */
const OPENING = 100;
const OPEN_TIMEOUT_MS = 10_000;

export interface SocketOptions {
  /** Such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly authorization: string;
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Called with the payload of each `next` message. */
  readonly onNext: (payload: string) => void;
}

/** One subscriber. */
export interface Subscriber {
  /** Payloads received so far. */
  received: number;
  close(): void;
}

/** Opens subscribers, a hundred at a time. */
export async function subscribeAll(
  count: number,
  options: (index: number) => SocketOptions,
): Promise<readonly Subscriber[]> {
  const subscribers: Subscriber[] = [];
  while (subscribers.length < count) {
    const from = subscribers.length;
    const batch = Array.from({ length: Math.min(OPENING, count - from) }, (_, index) =>
      subscribe(options(from + index)),
    );
    subscribers.push(...(await Promise.all(batch)));
  }
  return subscribers;
}

/**
 * A subscriber that speaks `graphql-transport-ws` over a bare TCP socket, so that ten thousand of them cost the driver
 * little. Each names its operation by a UUID, as the clients of graphql-ws do.
 */
export async function subscribe(options: SocketOptions): Promise<Subscriber> {
  const { hostname, port } = new URL(options.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const id = randomUUID();
  const before = `{"id":"${id}","type":"next","payload":`;
  const subscriber: Subscriber = { received: 0, close: () => socket.destroy() };

  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => void socket.destroy(new Error('A socket was not acknowledged in time.')),
      OPEN_TIMEOUT_MS,
    );
    const onText = (text: string) => {
      if (text.startsWith(before)) {
        subscriber.received += 1;
        options.onNext(text.slice(before.length, -1));
      } else if (text.includes('"connection_ack"')) {
        const payload = { query: options.query, variables: options.variables };
        sendFrame(socket, OPCODE.text, JSON.stringify({ id, type: 'subscribe', payload }));
        clearTimeout(timer);
        resolve();
      } else if (!text.includes('"ping"')) {
        reject(new Error(`A socket got ${text.slice(0, 300)}`));
      }
    };
    socket.on('error', reject);
    socket.once('close', () => {
      clearTimeout(timer);
      reject(new Error('A socket was closed.'));
    });
    socket.write(
      [
        'GET /graphql HTTP/1.1',
        `Host: ${hostname}:${port}`,
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Protocol: graphql-transport-ws',
        '\r\n',
      ].join('\r\n'),
    );
    readFrames(socket, onText, () => {
      const payload = { authorization: options.authorization };
      sendFrame(socket, OPCODE.text, JSON.stringify({ type: 'connection_init', payload }));
    });
  });
  return subscriber;
}

/** Parses what the server sends: the answer to the upgrade, then frames (RFC 6455, 5.2), in whatever pieces they come. */
function readFrames(socket: Socket, onText: (text: string) => void, onOpen: () => void): void {
  let rest: Buffer = Buffer.alloc(0);
  let open = false;
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    if (!open) {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      if (!rest.subarray(0, end).toString().startsWith('HTTP/1.1 101')) {
        socket.destroy(new Error(`The upgrade was refused: ${rest.subarray(0, end)}`));
        return;
      }
      open = true;
      rest = rest.subarray(end + 4);
      onOpen();
    }
    for (;;) {
      const frame = firstFrame(rest);
      if (frame === undefined) return;
      rest = rest.subarray(frame.end);
      if (frame.opcode === OPCODE.text) onText(frame.payload.toString());
      else if (frame.opcode === OPCODE.ping) sendFrame(socket, OPCODE.pong, frame.payload.toString());
      else if (frame.opcode === OPCODE.close) {
        socket.destroy(new Error(`The server closed a socket: ${frame.payload.subarray(2)}`));
      }
    }
  });
}

function firstFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 2) return undefined;
  let length = bytes.readUInt8(1) & 0x7f;
  let start = 2;
  if (length === 126) {
    if (bytes.length < 4) return undefined;
    length = bytes.readUInt16BE(2);
    start = 4;
  } else if (length === 127) {
    if (bytes.length < 10) return undefined;
    length = Number(bytes.readBigUInt64BE(2));
    start = 10;
  }
  const end = start + length;
  if (bytes.length < end) return undefined;
  return { opcode: bytes.readUInt8(0) & 0x0f, payload: bytes.subarray(start, end), end };
}

/** Clients mask their frames; a key of zeros leaves the bytes as they are. */
function sendFrame(socket: Socket, opcode: number, text: string): void {
  const payload = Buffer.from(text);
  const header =
    payload.length < 126
      ? Buffer.from([0x80 | opcode, 0x80 | payload.length, 0, 0, 0, 0])
      : Buffer.from([0x80 | opcode, 0xfe, payload.length >> 8, payload.length & 0xff, 0, 0, 0, 0]);
  socket.write(Buffer.concat([header, payload]));
}
