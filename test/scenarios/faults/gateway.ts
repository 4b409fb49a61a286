/**
 * A whole gateway in a process of its own, that ends itself with SIGKILL at the steps it is told. Its one argument is a
 * {@link GatewayTask} as JSON. It says `listening <url>` once it serves, and `killed <name>` as its last word.
 */

import { subscribe } from 'node:diagnostics_channel';
import { writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import type { ServerConfig } from '../../../src/app/server-config.ts';
import { silentLogger as logger } from '../../../src/common/logger.ts';
import { Secret } from '../../../src/common/secret.ts';
import { createMoney } from '../../../src/money/execute.ts';
import { openMoneyRecords } from '../../../src/money/open-money.ts';
import type { MoneyRecords } from '../../../src/money/record.ts';
import { buildServer } from '../../helpers/composition.ts';
import { gatewayConfig } from '../../helpers/gateway-config.ts';
import type { Kill } from './scenario.ts';

/** A kill together with the record, and the REST path, at which it strikes. */
export interface PlacedKill extends Kill {
  readonly name: string;
  /** The hash of the record's name. */
  readonly hash: string;
  /** How the path of the payment's POST begins. */
  readonly path: string;
}

export interface GatewayTask {
  readonly upstreamUrl: string;
  readonly dataDir: string;
  readonly redisUrl: string | undefined;
  readonly config: Partial<Pick<ServerConfig, 'upstreamTimeoutMs' | 'operationTimeoutMs' | 'upstreamReport'>>;
  /** How soon a record is taken over from a process that died. */
  readonly leaseMs: number;
  readonly kills: readonly PlacedKill[];
}

// The test that starts this process writes the argument.
const task = JSON.parse(process.argv[2] ?? '') as GatewayTask;
let open = task.kills.map((kill) => ({ kill, left: kill.skip }));
process.on('message', (kills: readonly PlacedKill[]) => {
  open = kills.map((kill) => ({ kill, left: kill.skip }));
  process.send?.('armed');
});
// The test is gone.
process.on('disconnect', () => process.exit(1));

/** Ends the process when a kill is due. The word is in the pipe before the signal is. */
function strike(isDue: (kill: PlacedKill) => boolean): void {
  const due = open.find(({ kill }) => isDue(kill));
  if (due === undefined) return;
  due.left -= 1;
  if (due.left >= 0) return;
  writeSync(1, `killed ${due.kill.name}\n`);
  process.kill(process.pid, 'SIGKILL');
}

function killing(records: MoneyRecords): MoneyRecords {
  return new Proxy(records, {
    get(target, step: keyof MoneyRecords) {
      if (step === 'stop') return target.stop;
      return async (name: { readonly hash: string }, ...rest: never[]) => {
        const at = (when: Kill['when']) =>
          strike((kill) => kill.step === step && kill.when === when && kill.hash === name.hash);
        at('before');
        // The arguments are passed on as they came.
        const result = await (target[step] as (...args: unknown[]) => Promise<unknown>)(name, ...rest);
        at('after');
        return result;
      };
    },
  });
}

subscribe('undici:request:bodySent', (message) => {
  // undici's documentation of this channel: the message carries the request.
  const { request } = message as { request: { method: string; path: string } };
  strike(
    ({ step, path }) => step === 'dispatch' && request.method === 'POST' && request.path.startsWith(path),
  );
});

const { upstreamUrl, dataDir, redisUrl, leaseMs } = task;
const server = buildServer(
  {
    ...gatewayConfig(upstreamUrl, dataDir),
    redisUrl: redisUrl === undefined ? undefined : new Secret(redisUrl),
    ...task.config,
  },
  logger,
  async (options) => {
    const records = killing(await openMoneyRecords(options));
    return createMoney({ records, logger, leaseMs });
  },
);
const url = await server.start();
// A process that is killed leaves nothing of what V8 has compiled to the next one, unless it is written before.
flushCompileCache();
writeSync(1, `listening ${url}\n`);
