import { Client } from 'undici';
import { awake } from './awake.ts';

/** One request of a load. `path` starts at the origin. */
export interface Shot {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface LoadOptions {
  /** Origin of the server. */
  readonly url: string;
  readonly requests: number;
  /** Keep-alive connections, each with one request at a time. */
  readonly connections: number;
  /** The request of this number, from 0. */
  readonly shot: (index: number) => Shot;
  /** Called with each answer; what it throws ends the load. */
  readonly check: (answer: Answer) => void;
  /** Whether to wait for answers without sleeping (awake.ts). */
  readonly awake?: boolean | undefined;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface LoadResult {
  readonly wallMs: number;
  /** How long each request took, in milliseconds, in the order of their answers. */
  readonly latenciesMs: readonly number[];
}

/** Sends a bounded number of requests over keep-alive connections, and checks every answer. */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const latenciesMs: number[] = [];
  let next = 0;
  const connection = async (): Promise<void> => {
    const client = new Client(options.url);
    try {
      while (next < options.requests) {
        const shot = options.shot(next);
        next += 1;
        const sent = performance.now();
        const answer = await client.request({ ...shot, body: shot.body ?? null });
        const text = await answer.body.text();
        latenciesMs.push(performance.now() - sent);
        options.check({ status: answer.statusCode, text });
      }
    } finally {
      await client.close();
    }
  };
  const start = performance.now();
  const all = () => Promise.all(Array.from({ length: options.connections }, connection));
  await (options.awake === true ? awake(all) : all());
  return { wallMs: performance.now() - start, latenciesMs };
}
