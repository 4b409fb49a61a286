/**
 * A night in production, played through on one machine: `npm run rehearse`. Two gateways behind HAProxy and nginx, both with TLS, on Redis
 * with a replica, a Sentinel and users with rights; phones with tokens of their own, a provider, a payer and a reader throughout.
 * Each step says what the users saw. Exit code 1: an event was lost, or money was moved twice.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { control } from '../../helpers/gateway.ts';
import type { Seen } from './night.ts';
import { openStage, requireTools } from './stage.ts';
import { STEPS } from './steps.ts';
import { startTraffic } from './traffic.ts';
import { startWatch } from './watch.ts';

const LIFETIME_SECONDS = 3_600;
/** How long what was begun in a step may take to come to its end after it, in milliseconds. */
const SETTLE_MS = 60_000;
const { values } = parseArgs({ options: { phones: { type: 'string' }, only: { type: 'string' } } });
const phones = Number(values.phones ?? '3000');

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

function row(name: string, seen: Seen, lost: number, watched: readonly string[]): string {
  const times = seen.queryMs.toSorted((one, other) => one - other);
  const cells = [
    name,
    `${seen.credits}: ${lost} lost, ${seen.repeated} repeated, ${seen.late} late, ${seen.gaps} gaps`,
    `${seen.paymentsDone} done, ${seen.paymentsPutOff} told to come again, ${seen.paymentsUnknown} unknown`,
    `${seen.reconnections}, and ${seen.failedReconnections} failed`,
    `${Math.round(percentile(times, 0.95))} ms of ${times.length}, ${seen.queriesFailed} failed`,
    ...watched,
  ];
  return `| ${cells.join(' | ')} |`;
}

requireTools();
const say = (text: string): void => void process.stdout.write(`${text}\n`);
await using stage = await openStage(LIFETIME_SECONDS);
const watch = await startWatch(stage, LIFETIME_SECONDS);
const traffic = await startTraffic(stage, phones);
const columns = ['step', 'credits', 'payments', 'reconnections', 'everyday queries, p95', '`/readyz`'];
columns.push('alerts that fired', 'the doctor found wrong');
say(`${phones} phones, ${cpus().length} cores, Node ${process.versions.node}\n`);
say(`| ${columns.join(' | ')} |`);
say(`|${' --- |'.repeat(columns.length)}`);
let lostInAll = 0;
traffic.take();
watch.takeAlerts();
for (const step of STEPS.filter(({ name }) => values.only === undefined || name.includes(values.only))) {
  const [doctor] = await Promise.all([watch.askDoctor(), step.run(stage)]);
  const lost = await traffic.settle(SETTLE_MS);
  lostInAll += lost;
  say(row(step.name, traffic.take(), lost, [watch.takeLooks(), watch.takeAlerts(), doctor]));
}
const doctor = await watch.askDoctor();
watch.stop();
const paid = [...traffic.paid];
await traffic.stop();
const { movements } = await control(stage.sandbox, 'GET', '/sandbox/ledger');
const moved = new Map<string, number>();
for (const { description } of movements as { description: string }[])
  moved.set(description, (moved.get(description) ?? 0) + 1);
const twice = [...moved].filter(([tag, times]) => tag.startsWith('rehearsed ') && times !== 1).length;
const untrue = paid.filter((tag) => !moved.has(tag)).length;
say(
  `\n${paid.length} payments were told as done: ${untrue} of them moved nothing, ${twice} moved money twice. Afterwards the doctor finds wrong: ${doctor}.`,
);
process.exitCode = lostInAll + twice + untrue === 0 ? 0 : 1;
