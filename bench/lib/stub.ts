import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { type RunningServer, startServer } from './process.ts';

/** The upstream of a measurement. */
export interface Stub extends AsyncDisposable {
  readonly url: string;
  /** REST calls answered so far. */
  calls(): Promise<number>;
  configure(settings: {
    latencyMs?: number;
    instruments?: number;
    customers?: number;
    largestPage?: number | null;
  }): Promise<void>;
}

/** Path of a program of the bench, for Node. */
export const programFile = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));

export async function startStub(): Promise<Stub> {
  const server: RunningServer = await startServer({ name: 'stub', args: [programFile('upstream/stub.ts')] });
  const control = `${server.url}/bench`;
  return {
    url: server.url,
    async calls() {
      const { body } = await request(control);
      return ((await body.json()) as { requests: number }).requests;
    },
    async configure(settings) {
      const { body } = await request(control, { method: 'POST', body: JSON.stringify(settings) });
      await body.dump();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}
