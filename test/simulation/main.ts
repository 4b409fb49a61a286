import { readOptions } from './options.ts';
import { type Report, run } from './run.ts';

const values = readOptions();
const { runs, hours, only, traffic } = values;
const first = values.seed ?? Math.floor(Math.random() * 2 ** 31);

const write = (text: string): void => void process.stdout.write(`${text}\n`);

/** The smallest number of faults with which a seed still fails. */
async function smallest(report: Report): Promise<Report> {
  let [passes, fails] = [-1, report.struck];
  let last = report;
  while (fails - passes > 1) {
    const middle = (passes + fails) >> 1;
    const shorter = await run({ seed: report.seed, hours, only, traffic, faults: middle });
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

/** What is added up over all runs. */
const total = {
  struck: 0,
  events: 0,
  deliveries: 0,
  payments: 0,
  connections: 0,
  streams: 0,
  steps: 0,
  cpuMs: 0,
  simulatedHours: 0,
};
const kinds: Record<string, number> = {};
let failed = 0;
let done = 0;
const minutes = values.minutes ?? Number.POSITIVE_INFINITY;
const until = performance.now() + minutes * 60_000;
for (let index = 0; index < runs && performance.now() < until; index += 1) {
  done += 1;
  const faults = values.faults === undefined ? {} : { faults: values.faults };
  const report = await run({ seed: first + index, hours, only, traffic, isLong: values.long, ...faults });
  if (values.long) {
    for (const line of report.lines) write(line.slice(0, 400));
    write(`digest ${report.digest}`);
  }
  // Its names are those of `total` alone.
  for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += report[name];
  for (const [kind, count] of Object.entries(report.faults)) kinds[kind] = (kinds[kind] ?? 0) + count;
  if (runs === 1) write(`seed ${report.seed}: ${report.plan}\n  digest ${report.digest}`);
  if (report.problems.length === 0) continue;
  failed += 1;
  show(report, 'FAILED');
  if (values['until-broken']) break;
  if (values.faults === undefined) show(await smallest(report), 'With as few faults as possible');
  write(
    `Again: npm run simulate -- --seed ${report.seed} --hours ${hours} --traffic ${traffic}${only === undefined ? '' : ` --only ${only}`}`,
  );
}
const { simulatedHours } = total;
write(
  `${done} runs of ${hours} h, ${failed} failed; ${total.struck} faults, ${total.payments} payments, ${total.events} events answered 201, ` +
    `${total.deliveries} given to readers, ${total.connections} connections, ${total.streams} sockets and streams of them, ${total.steps} steps; ` +
    `${simulatedHours.toFixed(2)} simulated hours in all, ${(total.cpuMs / 1000 / simulatedHours).toFixed(2)} s of CPU for each`,
);
write(
  Object.entries(kinds)
    .sort(([, one], [, other]) => other - one)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', '),
);
// Once a reader of the pipe has been given everything.
process.stdout.write('', () => process.exit(failed === 0 ? 0 : 1));
