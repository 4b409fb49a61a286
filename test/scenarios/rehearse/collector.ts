import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess, freePort } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import type { Listen, Received } from './otlp.ts';

const OTLP = fileURLToPath(new URL('otlp.ts', import.meta.url));
/** Gateways send spans every 5 s; a collector that was away is tried again by and by. In milliseconds. */
const LAST_SPANS_MS = 15_000;

/** The collector of OpenTelemetry that the gateways send their spans to. */
export interface Collector {
  readonly url: string;
  /** Refuses connections from now on. */
  leave(): Promise<void>;
  comeBack(): Promise<void>;
  /** Waits for these traces, but not for ever. @returns how many have not come */
  settle(traceIds: readonly string[]): Promise<number>;
  /** Spans of all kinds that have come. */
  spans(): number;
  stop(): void;
}

export async function startCollector(lifetimeSeconds: number): Promise<Collector> {
  const child = fork(OTLP);
  endWithThisProcess(child, lifetimeSeconds);
  const arrived = new Set<string>();
  let spans = 0;
  let port: number | undefined;
  // otlp.ts sends nothing else.
  child.on('message', (message: Received | Listen) => {
    if (!('spans' in message)) {
      port = message.port;
      return;
    }
    spans += message.spans;
    for (const id of message.traceIds) arrived.add(id);
  });
  const own = await freePort();
  const listen = async (wanted: number | undefined): Promise<void> => {
    child.send(wanted === undefined ? {} : { port: wanted });
    await until(() => port === wanted);
  };
  await listen(own);
  return {
    url: `http://127.0.0.1:${own}`,
    leave: () => listen(undefined),
    comeBack: () => listen(own),
    async settle(traceIds) {
      const missing = () => traceIds.filter((id) => !arrived.has(id)).length;
      const end = Date.now() + LAST_SPANS_MS;
      await until(() => missing() === 0 || Date.now() > end);
      return missing();
    },
    spans: () => spans,
    stop: () => void child.kill(),
  };
}
