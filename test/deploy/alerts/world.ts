import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningGateway } from '../../helpers/gateway.ts';
import type { Prometheus } from '../../helpers/prometheus.ts';

/** A fault that causes alerts. */
interface Fault<Parts> {
  readonly alerts: readonly string[];
  /** What happens, in a sentence. */
  readonly fault: string;
  /** Causes it. One that is not over at once goes on until `ended`. */
  cause(parts: Parts, ended: AbortSignal, prometheus: Prometheus): unknown;
}

/** What each world has, whatever else its faults need. */
interface Scraped {
  readonly url: string;
  /** Delivers one webhook that is as it should be; a world where none comes has none. */
  readonly deliver?: () => Promise<unknown>;
}

export interface OpenedWorld extends Scraped {
  /** In the order of the world's faults. */
  readonly causes: readonly ((ended: AbortSignal, prometheus: Prometheus) => Promise<void>)[];
}

/** A running gateway with all that it rests on, and the faults that are caused there one after another. */
export interface World {
  readonly name: string;
  readonly faults: readonly Pick<Fault<never>, 'alerts' | 'fault'>[];
  /** Starts it; `cleanup` ends what was started. */
  open(cleanup: AsyncDisposableStack): Promise<OpenedWorld>;
}

export const world = <Parts extends Scraped>(
  name: string,
  open: (cleanup: AsyncDisposableStack) => Promise<Parts>,
  faults: readonly Fault<Parts>[],
): World => ({
  name,
  faults,
  async open(cleanup) {
    const parts = await open(cleanup);
    return {
      ...parts,
      causes: faults.map(({ cause }) => async (ended, prometheus) => {
        await cause(parts, ended, prometheus);
      }),
    };
  },
});

/** Does something again and again, a tenth of a second after it is done, until it is ended. */
export async function goOn(ended: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  while (!ended.aborted) {
    await work();
    await pause(100);
  }
}

/** Delivers a webhook that is as it should be. */
export const deliverTo = ({ ingress, sandbox }: RunningGateway): Promise<unknown> =>
  fetch(ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
    method: 'POST',
    body: JSON.stringify({ id_msg: randomUUID() }),
  });
