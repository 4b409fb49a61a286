import { type Connection, Hearing, type Operation, RESULT, type Result } from './connection.ts';

const EVENT_STREAM = 'text/event-stream';
const COMPLETE = /^event: ?complete$/m;

const resultIn = (text: string): Result => {
  try {
    return RESULT.parse(JSON.parse(text));
  } catch {
    return { data: null, errors: [{ extensions: { code: `no GraphQL: ${text.slice(0, 80)}` } }] };
  }
};

/** Queries by POST, and each subscription as a stream of server-sent events. */
export function connectByHttp(url: string, token: string): Connection {
  const heard = new Hearing();
  const left = new AbortController();
  const post = (accept: string, operation: Operation, more: Readonly<Record<string, string>> = {}) =>
    fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept, ...more },
      body: JSON.stringify(operation),
      signal: left.signal,
    });
  const read = async (stream: string, response: Response): Promise<void> => {
    const decoder = new TextDecoder();
    let text = '';
    let isComplete = false;
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        isComplete ||= COMPLETE.test(block);
        hear(heard, stream, block);
      }
    }
    if (!isComplete) heard.push({ kind: 'closed', code: 0 });
  };
  return {
    heard,
    async query(stream, operation) {
      const response = await post('application/json', operation);
      heard.push({ kind: 'next', stream, result: resultIn(await response.text()) });
    },
    async subscribe(stream, operation, lastEventId) {
      const response = await post(
        EVENT_STREAM,
        operation,
        lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
      );
      const type = response.headers.get('content-type');
      if (!type?.startsWith(EVENT_STREAM)) {
        await response.body?.cancel();
        heard.push({ kind: 'error', stream, code: `${response.status}, ${type} and no stream` });
        return;
      }
      // A stream that is cut off, or that the client leaves at the end, is heard as closed.
      void read(stream, response).catch(() => heard.push({ kind: 'closed', code: 0 }));
    },
    async send() {
      throw new Error('A message goes over a socket alone.');
    },
    async [Symbol.asyncDispose]() {
      left.abort();
    },
  };
}

/** Reads one block of a stream, in the form of the standard. A block with only an id is a bookmark (B2). */
function hear(heard: Hearing, stream: string, block: string): void {
  const fields = new Map(
    block.split(/\r?\n/).map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')] as const;
    }),
  );
  const id = fields.get('id');
  if (COMPLETE.test(block)) heard.push({ kind: 'complete', stream });
  else if (fields.get('event') === 'next')
    heard.push({ kind: 'next', stream, result: resultIn(fields.get('data') ?? '') });
  else if (id !== undefined) heard.push({ kind: 'bookmark', stream, cursor: id });
  else heard.push({ kind: 'beat' });
}
