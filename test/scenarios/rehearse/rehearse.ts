/**
 * A night in production, played through on one machine: `npm run rehearse`. Two gateways behind HAProxy and nginx, both with TLS, on Redis
 * with a replica, a Sentinel and users with rights; phones with tokens of their own, a provider, a payer and a reader throughout.
 * Each step says what the users saw. Exit code 1: an event was lost, or money was moved twice.
 */
import { execFile } from 'node:child_process';
import { cpus } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { control } from '../../helpers/gateway.ts';
import type { Seen } from './night.ts';
import { type Member, openStage, requireTools, type Stage } from './stage.ts';
import { STEPS } from './steps.ts';
import { startTraffic } from './traffic.ts';

const LIFETIME_SECONDS = 3_600;
/** How long what was begun in a step may take to come to its end after it, in milliseconds. */
const SETTLE_MS = 60_000;
const LOOK_EVERY_MS = 250;
const { values } = parseArgs({ options: { phones: { type: 'string' }, only: { type: 'string' } } });
const phones = Number(values.phones ?? '3000');

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

/** Looks at `/readyz` of a gateway, beside the proxies, as often as a proxy does. */
async function look({ url, looks }: Member, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const start = performance.now();
    const state = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) }).then(
      async (response) => {
        const { status, degraded = [] } = (await response.json()) as { status: string; degraded?: string[] };
        looks.longestMs = Math.max(looks.longestMs, performance.now() - start);
        return degraded.length === 0 ? status : degraded.join(' ');
      },
      (error: Error) => {
        if (error.name !== 'TimeoutError') return 'gone';
        looks.longestMs = Math.max(looks.longestMs, performance.now() - start);
        return 'no answer';
      },
    );
    looks.states.add(state);
    await pause(LOOK_EVERY_MS);
  }
}

/** What the doctor finds wrong, by the names of its checks. */
async function askDoctor({ environment, members: [{ url, dataDir }] }: Stage): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  const own = { PATH, HOME, ...environment, PORT: new URL(url).port, DATA_DIR: dataDir };
  const options = { env: own, timeout: 60_000 };
  const stdout = await new Promise<string>((resolve) => {
    // It ends with 1 where it finds something wrong.
    execFile(process.execPath, ['src/cli/pasarela.ts', 'doctor', '--json'], options, (_error, text) =>
      resolve(text),
    );
  });
  const { findings }: { findings: { check: string; status: string }[] } = JSON.parse(stdout);
  const failed = findings.filter(({ status }) => status === 'failure').map(({ check }) => check);
  return [...new Set(failed)].join(', ') || 'nothing';
}

function row(name: string, seen: Seen, lost: number, stage: Stage): string {
  const times = seen.queryMs.toSorted((one, other) => one - other);
  const looks = stage.members.map((member) => {
    const { longestMs, states } = member.looks;
    const text = `${member.name}: ${[...states].join(' → ')}, ${Math.round(longestMs)} ms`;
    member.looks.longestMs = 0;
    states.clear();
    return text;
  });
  const cells = [
    name,
    `${seen.credits}: ${lost} lost, ${seen.repeated} repeated, ${seen.late} late, ${seen.gaps} gaps`,
    `${seen.paymentsDone} done, ${seen.paymentsPutOff} told to come again, ${seen.paymentsUnknown} unknown`,
    `${seen.reconnections}, and ${seen.failedReconnections} failed`,
    `${Math.round(percentile(times, 0.95))} ms of ${times.length}, ${seen.queriesFailed} failed`,
    looks.join('; '),
  ];
  return `| ${cells.join(' | ')} |`;
}

requireTools();
const say = (text: string): void => void process.stdout.write(`${text}\n`);
await using stage = await openStage(LIFETIME_SECONDS);
const watching = new AbortController();
for (const member of stage.members) void look(member, watching.signal);
const traffic = await startTraffic(stage, phones);
say(`${phones} phones, ${cpus().length} cores, Node ${process.versions.node}\n`);
say('| step | credits | payments | reconnections | everyday queries, p95 | `/readyz` |');
say('| --- | --- | --- | --- | --- | --- |');
let lostInAll = 0;
traffic.take();
for (const step of STEPS.filter(({ name }) => values.only === undefined || name.includes(values.only))) {
  await step.run(stage);
  const lost = await traffic.settle(SETTLE_MS);
  lostInAll += lost;
  say(row(step.name, traffic.take(), lost, stage));
}
await pause(2_000);
watching.abort();
const doctor = await askDoctor(stage);
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
