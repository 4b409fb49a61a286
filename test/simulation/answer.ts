import type { IncomingMessage } from 'node:http';

/** As much of a `Response` as the client reads. */
export function answerOf(message: IncomingMessage): Response {
  const chunks: Buffer[] = [];
  let error: Error | undefined;
  let ended = false;
  let wake: (() => void) | undefined;
  const tell = (): void => {
    wake?.();
    wake = undefined;
  };
  message.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    tell();
  });
  message.on('end', () => {
    ended = true;
    tell();
  });
  message.on('error', (cause) => {
    error = cause;
    tell();
  });
  message.on('close', () => {
    if (!ended) error ??= new Error('The connection was cut off.');
    tell();
  });
  const read = async (): Promise<{ done: boolean; value?: Buffer }> => {
    for (;;) {
      const value = chunks.shift();
      if (value !== undefined) return { done: false, value };
      if (error !== undefined) throw error;
      if (ended) return { done: true };
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const { statusCode: status = 0, headers } = message;
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name: string) => String(headers[name.toLowerCase()] ?? '') || null },
    body: { getReader: () => ({ read }) },
    async text() {
      const parts: Buffer[] = [];
      for (let next = await read(); next.value !== undefined; next = await read()) parts.push(next.value);
      return Buffer.concat(parts).toString();
    },
    // The client reads no more of it than this.
  } as unknown as Response;
}
