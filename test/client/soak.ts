import { mkdtemp, rm } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { prepareCompiled } from './compiled.ts';
import { goThroughOutages } from './outages.ts';

const USAGE = `npm run soak:clients -- [--disconnects 1000] [--seed 1]

Follows events by every binding of packages/client at once, from one gateway with its own log and then from two behind a
Redis, while connections are cut or left half-open, gateways and the app are killed, tokens expire and the log is lost. Ends
with 1 where an event is lost or repeated, or missing without a gap that says so.`;

const { values } = parseArgs({
  options: { disconnects: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean' } },
});
if (values.help === true) {
  process.stdout.write(`${USAGE}\n`);
  process.exit(0);
}
const say = (text: string) => process.stdout.write(`${text}\n`);
const disconnects = Number(values.disconnects ?? 1_000) / 2;
let isGood = true;
const { compiled, work } = await prepareCompiled();
try {
  for (const redis of [false, true]) {
    const report = await goThroughOutages({
      redis,
      disconnects,
      seed: Number(values.seed ?? 1),
      work: await mkdtemp(`${work}/kept-`),
      compiled,
      lifetimeSeconds: 1_800,
    });
    const { backLiveMs, kept, ...rest } = report;
    const at = (share: number) => backLiveMs[Math.floor((backLiveMs.length - 1) * share)];
    say(redis ? 'Two gateways behind a Redis' : 'One gateway with its own log');
    say(JSON.stringify(rest, undefined, 2));
    say(
      `live after a cut network was back, of ${backLiveMs.length}: median ${at(0.5)} ms, p95 ${at(0.95)} ms, most ${at(1)} ms`,
    );
    for (const [name, { lost, repeated, gaps }] of Object.entries(kept)) {
      say(`${name.padEnd(12)} lost ${lost}, repeated ${repeated}, gaps told ${gaps}`);
      isGood &&= lost === 0 && repeated === 0;
    }
  }
} finally {
  await rm(work, { recursive: true, force: true });
}
say(isGood ? 'Nothing lost, nothing repeated, no gap unnoticed.' : 'FAILED');
process.exitCode = isGood ? 0 : 1;
