import { readOptions } from './options.ts';
import { type Report, run } from './run.ts';

const values = readOptions();
const { runs, hours, only } = values;
const first = values.seed ?? Math.floor(Math.random() * 2 ** 31);

const write = (text: string): void => void process.stdout.write(`${text}\n`);

/** The smallest number of faults with which a seed still fails. */
async function smallest(report: Report): Promise<Report> {
  let [passes, fails] = [-1, report.struck];
  let last = report;
  while (fails - passes > 1) {
    const middle = (passes + fails) >> 1;
    const shorter = await run({ seed: report.seed, hours, only, faults: middle });
    if (shorter.problems.length > 0) [fails, last] = [middle, shorter];
    else passes = middle;
  }
  return last;
}

function show(report: Report, what: string): void {
  write(`${what}: seed ${report.seed}, ${report.struck} faults`);
  write(`  ${report.plan}`);
  for (const line of report.lines.slice(-30)) write(`  ${line.slice(0, 300)}`);
  for (const problem of report.problems.slice(0, 5)) write(`  BROKEN: ${problem}`);
}

const total = {
  faults: {} as Record<string, number>,
  struck: 0,
  events: 0,
  deliveries: 0,
  payments: 0,
  connections: 0,
  steps: 0,
  cpuMs: 0,
};
let failed = 0;
let done = 0;
const minutes = values.minutes ?? Number.POSITIVE_INFINITY;
const until = performance.now() + minutes * 60_000;
for (let index = 0; index < runs && performance.now() < until; index += 1) {
  done += 1;
  const faults = values.faults === undefined ? {} : { faults: values.faults };
  const report = await run({ seed: first + index, hours, only, isLong: values.long, ...faults });
  if (values.long) {
    for (const line of report.lines) write(line.slice(0, 400));
    write(`digest ${report.digest}`);
  }
  for (const name of ['struck', 'events', 'deliveries', 'payments', 'connections', 'steps', 'cpuMs'] as const)
    total[name] += report[name];
  for (const [kind, count] of Object.entries(report.faults))
    total.faults[kind] = (total.faults[kind] ?? 0) + count;
  if (runs === 1) write(`seed ${report.seed}: ${report.plan}\n  digest ${report.digest}`);
  if (report.problems.length === 0) continue;
  failed += 1;
  show(report, 'FAILED');
  if (values['until-broken']) break;
  if (values.faults === undefined) show(await smallest(report), 'With as few faults as possible');
  write(
    `Again: npm run simulate -- --seed ${report.seed} --hours ${hours}${only === undefined ? '' : ` --only ${only}`}`,
  );
}
const simulated = done * hours;
write(
  `${done} runs of ${hours} h, ${failed} failed; ${total.struck} faults, ${total.payments} payments, ${total.events} events answered 201, ` +
    `${total.deliveries} given to readers, ${total.connections} connections, ${total.steps} steps; ` +
    `${(total.cpuMs / 1000 / simulated).toFixed(2)} s of CPU for each simulated hour`,
);
write(
  Object.entries(total.faults)
    .sort(([, one], [, other]) => other - one)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', '),
);
// Once a reader of the pipe has been given everything.
process.stdout.write('', () => process.exit(failed === 0 ? 0 : 1));
