import { readFile, writeFile } from 'node:fs/promises';
import { cpus, loadavg, totalmem } from 'node:os';
import type { Seen } from './night.ts';
import type { Watched } from './watch.ts';

/** What one step came to. */
export interface StepReport {
  readonly name: string;
  /** What was done, in a sentence. */
  readonly done: string;
  /** How long it took, until all that was begun in it had come to its end. */
  readonly seconds: number;
  readonly seen: Seen;
  /** Credits that were acknowledged and have not reached their phone. */
  readonly lost: number;
  /** Payments that were told as done and have not moved their money once. */
  readonly untrue: number;
  /** Payments and queries that were answered with data, and how many of them have not come to the collector. */
  readonly traces: number;
  readonly tracesLost: number;
  readonly watched: Watched;
  readonly doctor: { readonly second: number; readonly what: string };
}

/** `/readyz` is to answer within this time in each step (docs/sizing.md, "A load test of one night"), in milliseconds. */
const READY_WITHIN_MS = 1_000;

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;

const table = (columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [row(columns), row(columns.map(() => '---')), ...rows.map(row)].join('\n');

const saw = ({ name, seconds, seen, lost, untrue }: StepReport): readonly (string | number)[] => [
  name,
  `${seconds} s`,
  seen.credits,
  `${lost}, ${seen.repeated}, ${seen.late}, ${seen.gaps}`,
  seen.paymentsDone,
  `${seen.paymentsRefused}, ${seen.paymentsUnanswered}, ${seen.paymentsUnknown}, ${untrue}`,
  `${seen.reconnections}, ${seen.failedReconnections}; ${Math.round(seen.phonesLateMs)} ms`,
  `${Math.round(
    percentile(
      seen.queryMs.toSorted((one, other) => one - other),
      0.95,
    ),
  )} ms of ${seen.queryMs.length}, ${seen.queriesFailed} failed`,
];

/** The reasons of what failed in a step, the most frequent first. */
function whysOf({ seen }: StepReport): string {
  const sorted = [...seen.whys].toSorted(([, one], [, other]) => other - one);
  return sorted.map(([why, times]) => `${times} × ${why}`).join('; ') || 'nothing';
}

const longest = ({ watched }: StepReport): number =>
  Math.max(...watched.readiness.map(({ longestMs }) => longestMs));

function said({ name, traces, tracesLost, watched, doctor }: StepReport): readonly string[] {
  const { readiness, lateMs, alerts, alertsBefore } = watched;
  const times = readiness.map((one) => `${one.name} ${Math.round(one.longestMs)} ms`).join(', ');
  const states = readiness.map((one) => {
    const [first, ...others] = one.said;
    const later = others.map(({ second, what }) => `${second} s ${what}`);
    return `${one.name}: ${[first?.what ?? 'nothing', ...later].join(', ')}`;
  });
  const fired = alerts.map(({ second, what }) => `${second} s ${what}`).join(', ') || 'none';
  const before = alertsBefore.length === 0 ? '' : `; from before: ${alertsBefore.join(', ')}`;
  return [
    name,
    `${times}; the asker ${Math.round(lateMs)} ms`,
    states.join('; '),
    `${fired}${before}`,
    `${doctor.second} s ${doctor.what}`,
    `${traces}, ${tracesLost}`,
  ];
}

/** What a night came to, as Markdown. @param end sentences about the whole night. */
export function reportOf(phones: number, steps: readonly StepReport[], end: string): string {
  const [cpu] = cpus();
  const slow = steps.filter((step) => longest(step) > READY_WITHIN_MS).map(({ name }) => name);
  const late = slow.length === 0 ? 'no step' : `${slow.length} of ${steps.length} steps (${slow.join('; ')})`;
  const minutes = Math.ceil(steps.reduce((sum, { seconds }) => sum + seconds, 0) / 60);
  const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'a core'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux, Node ${process.versions.node}`;
  const [, , load = 0] = loadavg();
  return [
    `${new Date().toISOString().slice(0, 10)}, ${phones} phones, ${minutes} minutes, on ${machine}; load ${load.toFixed(1)} in the last quarter of an hour.`,
    table(
      ['step', 'what is done'],
      steps.map(({ name, done }) => [name, done]),
    ),
    table(
      [
        'what users saw in',
        'time',
        'credits',
        'lost, repeated, late, gaps told',
        'payments',
        'refused, without an answer, unknown, untrue',
        'reconnections, failed ones; the phones themselves late by',
        'everyday queries, p95',
      ],
      steps.map(saw),
    ),
    table(
      ['what failed in', 'why'],
      steps.map((step) => [step.name, whysOf(step)]),
    ),
    table(
      ['what was said in', 'longest `/readyz`', '`/readyz`', 'alerts', 'the doctor', 'traces, lost ones'],
      steps.map(said),
    ),
    `${end} \`/readyz\` took longer than a second in ${late}.`,
  ].join('\n\n');
}

const BEGIN = '<!-- written by npm run rehearse -->';
const END = '<!-- until here -->';

/** Puts a report between the two markers of a page, in the place of what is there. */
export async function writeInto(path: string, report: string): Promise<void> {
  const text = await readFile(path, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${path} does not have the lines ${BEGIN} and ${END}.`);
  await writeFile(path, `${text.slice(0, from)}${BEGIN}\n\n${report}\n\n${text.slice(to)}`);
}
