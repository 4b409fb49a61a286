/**
 * `npm run bench` measures everything and writes `bench/results/latest.md` and `latest.svg`; `npm run bench -- W1 W4`
 * measures these and prints them. With `--beside FOLDER`, W1, W1c, W2, W3 and W21 measure the gateway of that checkout as well.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { chart } from './lib/chart.ts';
import { measureBeside } from './lib/contenders.ts';
import { goalsTable, report, sectionText } from './lib/report.ts';
import type { Section } from './lib/section.ts';
import { w18, w19 } from './workloads/capacity.ts';
import { w12 } from './workloads/come-back.ts';
import { w10 } from './workloads/credits.ts';
import { w15, w20 } from './workloads/fairness.ts';
import { w4 } from './workloads/fan-out.ts';
import { w17 } from './workloads/first-visit.ts';
import { w1, w1c, w1l, w1n, w2, w3 } from './workloads/http.ts';
import { w5 } from './workloads/ingest.ts';
import { w13, w14 } from './workloads/lists.ts';
import { w21 } from './workloads/mixed.ts';
import { w11 } from './workloads/own-credits.ts';
import { w8 } from './workloads/processes.ts';
import { w9 } from './workloads/receipts.ts';
import { w7 } from './workloads/refusals.ts';
import { w16 } from './workloads/search.ts';
import { w6 } from './workloads/start.ts';

/** The longest that one work may take, in milliseconds; the whole stays under half an hour. */
const WORK_TIMEOUT_MS = 240_000;

const WORKS: ReadonlyMap<string, () => Promise<Section>> = new Map([
  ['W1', w1],
  ['W1C', w1c],
  ['W1L', w1l],
  ['W1N', w1n],
  ['W2', w2],
  ['W3', w3],
  ['W4', w4],
  ['W5', w5],
  ['W6', w6],
  ['W7', w7],
  ['W8', w8],
  ['W9', w9],
  ['W10', w10],
  ['W11', w11],
  ['W12', w12],
  ['W13', w13],
  ['W14', w14],
  ['W15', w15],
  ['W16', w16],
  ['W17', w17],
  ['W18', w18],
  ['W19', w19],
  ['W20', w20],
  ['W21', w21],
]);

/** Those that start a Redis; found missing at once, not after minutes. */
const NEEDING_REDIS = ['W5', 'W8', 'W16', 'W18', 'W19'];

const { values, positionals } = parseArgs({
  options: { beside: { type: 'string' } },
  allowPositionals: true,
});
if (values.beside !== undefined) measureBeside(values.beside);
const asked = positionals.map((name) => name.toUpperCase());
const unknown = asked.filter((name) => !WORKS.has(name));
if (unknown.length > 0) {
  process.stderr.write(`There is no ${unknown.join(', ')}. There are ${[...WORKS.keys()].join(', ')}.\n`);
  process.exit(1);
}

if (NEEDING_REDIS.some((name) => asked.length === 0 || asked.includes(name))) {
  await import('../scripts/require-redis.ts');
}
const start = performance.now();
const sections: Section[] = [];
for (const [name, work] of WORKS) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const timer = setTimeout(() => {
    process.stderr.write(`${name} took more than ${WORK_TIMEOUT_MS / 1_000} s.\n`);
    process.exit(1);
  }, WORK_TIMEOUT_MS);
  // What the work before has left behind must not be collected in the midst of this one.
  globalThis.gc?.();
  const section = await work();
  clearTimeout(timer);
  sections.push(section);
  process.stdout.write(`${sectionText(section)}\n`);
}
process.stdout.write(`${goalsTable(sections)}\n`);

if (asked.length === 0) {
  const results = new URL('results/', import.meta.url);
  mkdirSync(results, { recursive: true });
  const minutes = (performance.now() - start) / 60_000;
  writeFileSync(new URL('latest.md', results), report(sections, minutes));
  writeFileSync(
    new URL('latest.svg', results),
    chart(sections.flatMap(({ bars }) => (bars === undefined ? [] : [bars]))),
  );
  process.stdout.write('\nWritten to bench/results/latest.md and latest.svg.\n');
}
process.exit(0);
