import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { createRareLines } from '../common/rare-lines.ts';
import { answerOn } from './connections.ts';

const { maxHeaderSize, STATUS_CODES } = process.getBuiltinModule('node:http');

/** How long the peer may take to read the reason and to close its side, in milliseconds. */
const REFUSED_MS = 1_000;

/** What proxies begin a connection with where they are set up for another server, and what helps. */
const FOREIGN: readonly { readonly begins: string; readonly protocol: string; readonly cure: string }[] = [
  ...['PROXY ', '\r\n\r\n\0\r\nQUIT\n'].map((begins) => ({
    begins,
    protocol: 'the PROXY protocol',
    cure: 'Have the proxy send none (in HAProxy without send-proxy), and write the address of its client into X-Forwarded-For.',
  })),
  {
    begins: '\x16\x03',
    protocol: 'TLS',
    cure: 'Reach the gateway by http://, and have the proxy in front end TLS.',
  },
  {
    begins: 'PRI * HTTP/2.0',
    protocol: 'HTTP/2',
    cure: 'Have the proxy in front speak HTTP/1.1 to the gateway (in HAProxy without proto h2).',
  },
];

/** By the code of Node's error: the status that Node answers by itself, and what is wrong. */
const FAULTS: Readonly<Record<string, readonly [status: number, error: string]>> = {
  HPE_HEADER_OVERFLOW: [431, `The headers of a request have ${maxHeaderSize} bytes at most.`],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'The extensions of a chunk are too long.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to come.'],
};
const MALFORMED = [400, 'This is no request of HTTP/1.1.'] as const;

/**
 * Answers what Node cannot read as a request, with the reason. Node by itself answers without a word, so that nobody finds a proxy that is
 * set up to speak another protocol; of such a one a line is logged too.
 */
export function answerUnreadable(server: Server, logger: Logger): void {
  const isDue = createRareLines();
  server.on('clientError', (error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }, duplex) => {
    // A server of node:net listens, and each of its connections is such a socket.
    const socket = duplex as Socket;
    // Node calls it again for what still comes behind a refusal.
    if (socket.writableEnded) return;
    // What was begun of an answer would have the reason in its middle. The client of a whole request would take the reason for its answer,
    // though the fault is that of one behind it: a payment that is being made would be told as refused.
    const answer = answerOn(socket);
    if (!socket.writable || answer?.headersSent === true || answer?.req.complete === true) {
      socket.destroy();
      return;
    }
    const { code = '', rawPacket } = error;
    const foreign = rawPacket?.length === socket.bytesRead ? foreignOf(rawPacket) : undefined;
    if (foreign !== undefined && isDue(foreign.protocol)) {
      const { protocol, cure } = foreign;
      logger.warn({ protocol, cure }, 'a connection was refused, as it does not begin with HTTP/1.1');
    }
    const [status, why] = FAULTS[code] ?? MALFORMED;
    const reason =
      foreign === undefined ? why : `This connection begins with ${foreign.protocol}. ${foreign.cure}`;
    refuse(socket, status, reason);
  });
}

function foreignOf(bytes: Buffer): (typeof FOREIGN)[number] | undefined {
  const text = bytes.toString('latin1', 0, 20);
  return FOREIGN.find(({ begins }) => text.startsWith(begins));
}

function refuse(socket: Socket, status: number, error: string): void {
  const body = JSON.stringify({ error });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json`;
  socket.end(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  const timer = clock.setTimeout(() => socket.destroy(), REFUSED_MS);
  socket.once('close', () => clock.clearTimeout(timer));
}
