/**
 * Asks what an app asks every day, through one proxy and the other by turns, in a process of its own, so that no figure holds the work of
 * the phones. Its arguments are the proxies' origins and the file of their authority; its parent sends it the header that it shows, and is
 * told each time that an answer took.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { ask, whyOf } from './ask.ts';

/** In milliseconds; undefined where there was no answer, or one with errors. */
export interface Reading {
  readonly milliseconds?: number;
  /** Why there was none. */
  readonly why?: string;
  /** The trace of an answer without errors. */
  readonly traceId?: string;
}

const EVERYDAY = '{ client { id accounts(first: 5) { nodes { id availableBalance { amount } } } } }';
const EVERY_MS = 100;
const [first = '', second = '', authority = ''] = process.argv.slice(2);
const agent = new Agent({ connect: { ca: await readFile(authority, 'utf8') }, connections: 4 });
let authorization = '';

// The parent is gone.
process.on('disconnect', () => process.exit(0));
process.on('message', (message) => {
  authorization = String(message);
});
await once(process, 'message');
for (let turn = 0; ; turn += 1) {
  const start = performance.now();
  const isFirst = turn % 2 === 0;
  const failed = (why: string): Reading => ({ why: `query, ${isFirst ? 'HAProxy' : 'nginx'}: ${why}` });
  const reading = await ask(agent, isFirst ? first : second, authorization, EVERYDAY).then(
    ({ data, errors, traceId }): Reading =>
      errors === undefined && data != null
        ? { milliseconds: performance.now() - start, traceId }
        : failed(errors?.[0]?.extensions?.code ?? 'no data'),
    (error: unknown) => failed(whyOf(error)),
  );
  process.send?.(reading);
  await pause(EVERY_MS);
}
