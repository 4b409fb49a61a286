import { mkdtemp, rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { prepareCompiled } from './compiled.ts';
import { type Back, goThroughOutages } from './outages.ts';
import { payOnBadNetworks } from './paying.ts';

const USAGE = `npm run soak:clients -- [--disconnects 1000] [--payments 500] [--seed 1] [--minutes 60]

Follows events by every binding of packages/client at once, and by what a user of each library writes without reading, from one gateway with its own log and, beside it, from two behind a
Redis, until each program has lost so many connections, half of them there and half here, or the minutes are over: while connections are cut or left half-open, gateways and the app are killed, tokens expire and the log is lost. Then
pays with answers lost on both sides of the gateway, and app and gateway killed. Ends with 1 where an event is lost or
repeated, or missing without a gap that says so, and where money moves twice or the app was told something else than the
ledger shows.`;

const { values } = parseArgs({
  options: {
    disconnects: { type: 'string' },
    payments: { type: 'string' },
    seed: { type: 'string' },
    minutes: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help === true) {
  process.stdout.write(`${USAGE}\n`);
  process.exit(0);
}
/** The other outages take some seconds each. */
const CUTS_IN_A_ROW = 24;
const say = (text: string) => process.stdout.write(`${text}\n`);
const disconnects = Number(values.disconnects ?? 1_000) / 2;
const payments = Number(values.payments ?? 500);
const seed = Number(values.seed ?? 1);
const times = (backs: readonly Back[]) => {
  const sorted = backs.toSorted((one, other) => one.ms - other.ms);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)];
  const last = at(1);
  return `${sorted.length} times, median ${at(0.5)?.ms} ms, p95 ${at(0.95)?.ms} ms, most ${last?.ms} ms (${last?.name}: ${last?.way})`;
};
let isGood = true;

/** Follows from one gateway with its own log, or from two behind a Redis. */
async function followThrough(redis: boolean): Promise<void> {
  const report = await goThroughOutages({
    redis,
    disconnects,
    cutsInARow: CUTS_IN_A_ROW,
    minutes: values.minutes === undefined ? undefined : Number(values.minutes),
    seed,
    work: await mkdtemp(`${work}/kept-`),
    compiled,
    lifetimeSeconds: 7_200,
  });
  const { backLive, kept, lostConnections, ...rest } = report;
  say(redis ? 'Two gateways behind a Redis' : 'One gateway with its own log');
  say(JSON.stringify(rest, undefined, 2));
  say(`live after a cut network was back, found out by itself: ${times(backLive.untold)}`);
  say(`live after a cut network was back, told so: ${times(backLive.told)}`);
  for (const [name, { lost, repeated, gaps, complete }] of Object.entries(kept)) {
    say(
      `${name.padEnd(20)} ${lostConnections[name]} connections lost; events lost ${lost}, repeated ${repeated}, gaps told ${gaps}, complete ${complete}`,
    );
    isGood &&= lost === 0 && repeated === 0 && complete;
  }
}

const { compiled, work } = await prepareCompiled();
try {
  if (disconnects > 0) await Promise.all([false, true].map(followThrough));
  const { lies, ...paid } = await payOnBadNetworks({
    payments,
    seed,
    work: await mkdtemp(`${work}/paid-`),
    lifetimeSeconds: 3_600,
  });
  say('Payments');
  say(JSON.stringify(paid, undefined, 2));
  for (const lie of lies) say(lie);
  isGood &&= lies.length === 0;
} finally {
  await rm(work, { recursive: true, force: true });
}
say(isGood ? 'Nothing lost, nothing repeated, no gap unnoticed, nothing paid twice.' : 'FAILED');
process.exitCode = isGood ? 0 : 1;
