/**
 * A night in production, played through on one machine: `npm run rehearse`. Two gateways behind HAProxy and nginx on Redis with a replica, a
 * Sentinel and users with rights, all with TLS, and an identity provider; phones with tokens of their own, a provider, a payer and a reader
 * throughout. Each step says what the users saw. Exit code 1: an event was lost, or a payment was told as done and did not move its money once.
 */
import { constants } from 'node:os';
import { control } from '../../helpers/gateway.ts';
import { readCommandLine } from './command-line.ts';
import { reportOf, type StepReport, writeInto } from './report.ts';
import { openStage, type Stage } from './stage.ts';
import { STEPS } from './steps.ts';
import { startTraffic } from './traffic.ts';
import { startWatch } from './watch.ts';
import { TAG } from './work.ts';

const LIFETIME_SECONDS = 3_600;
/** How long what was begun in a step may take to come to its end after it, in milliseconds. */
const SETTLE_MS = 180_000;
const { phones, steps, write } = readCommandLine(
  process.argv.slice(2),
  STEPS.map(({ name }) => name),
);

/** How often each payment of the night has moved its money, by its tag. */
async function movedBy({ sandbox }: Stage): Promise<ReadonlyMap<string, number>> {
  const { movements }: { movements: { description: string }[] } = await control(
    sandbox,
    'GET',
    '/sandbox/ledger',
  );
  const moved = new Map<string, number>();
  for (const { description } of movements)
    if (description.startsWith(TAG)) moved.set(description, (moved.get(description) ?? 0) + 1);
  return moved;
}

await using cleanup = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await cleanup.disposeAsync();
    process.exit(128 + constants.signals[signal]);
  });
}
const say = (text: string): void => void process.stderr.write(`${text}\n`);
const stage = await openStage(cleanup, LIFETIME_SECONDS);
const watch = await startWatch(stage, LIFETIME_SECONDS);
const traffic = await startTraffic(stage, phones, LIFETIME_SECONDS);
say(`${phones} phones are there.`);
const reports: StepReport[] = [];
let checked = 0;
for (const step of STEPS.filter(({ name }) => steps.includes(name))) {
  traffic.take();
  watch.take();
  const start = performance.now();
  const [doctor] = await Promise.all([watch.askDoctor(), step.run(stage)]);
  const lost = await traffic.settle(SETTLE_MS);
  const seconds = Math.round((performance.now() - start) / 1_000);
  const traces = traffic.traces();
  const tracesLost = await stage.collector.settle(traces);
  const moved = await movedBy(stage);
  const untrue = traffic.paid.slice(checked).filter((tag) => moved.get(tag) !== 1).length;
  checked = traffic.paid.length;
  reports.push({
    name: step.name,
    done: step.done,
    seconds,
    seen: traffic.take(),
    lost,
    untrue,
    traces: traces.length,
    tracesLost,
    watched: watch.take(),
    doctor,
  });
  say(`${step.name}: ${seconds} s, ${lost} lost, ${untrue} untrue.`);
}
const { what: wrong } = await watch.askDoctor();
watch.stop();
await traffic.stop();
const moved = await movedBy(stage);
const twice = [...moved.values()].filter((times) => times !== 1).length;
const lost = reports.reduce((sum, report) => sum + report.lost, 0);
const untrue = traffic.paid.filter((tag) => moved.get(tag) !== 1).length;
const report = reportOf(
  phones,
  reports,
  `${lost} credits were lost. ${traffic.paid.length} payments were told as done: ${untrue} of them did not move their money once, and ${twice} of all moved it twice. ${stage.collector.spans()} spans came to the collector. Afterwards the doctor finds wrong: ${wrong}.`,
);
process.stdout.write(`${report}\n`);
if (write !== undefined) await writeInto(write, report);
process.exitCode = lost + twice + untrue === 0 ? 0 : 1;
