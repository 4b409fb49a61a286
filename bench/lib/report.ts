import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, totalmem } from 'node:os';
import { type Goal, number, type Section } from './section.ts';

const met = ({ limit, reached }: Goal): boolean => reached <= limit;

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const table = (columns: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(columns), row(columns.map(() => '---')), ...rows.map(row)].join('\n');

const value = (amount: number, unit: string): string =>
  unit === '' ? amount.toFixed(2).replace(/\.00$/, '') : `${number(amount)}${unit}`;

/** The goals, and whether each is met. */
export function goalsTable(sections: readonly Section[]): string {
  const goals = sections.flatMap((section) => section.goals);
  return table(
    ['work', '', 'goal', 'reached', 'met'],
    goals.map((goal) => [
      goal.work,
      goal.what,
      `≤ ${value(goal.limit, goal.unit)}`,
      value(goal.reached, goal.unit),
      met(goal) ? 'yes' : '**no**',
    ]),
  );
}

/** One work's measurements. */
export const sectionText = ({ title, method, columns, rows }: Section): string =>
  `## ${title}\n\n${method}\n\n${table(columns, rows)}\n`;

/** The whole report, as Markdown. */
export function report(sections: readonly Section[], minutes: number): string {
  return `# Measurements

\`npm run bench\`, ${new Date().toISOString().slice(0, 10)}, in ${minutes.toFixed(1)} minutes. Every server runs in a process of its own on loopback,
in front of the same static upstream in another. The contenders take turns, round by round; figures are medians of the
rounds, with the lowest and the highest in parentheses, and ratios medians of the ratios of each round. CPU is user and
system time of the server process with all its threads, as the operating system accounts for it. Before anything is
timed, the answers are compared: the same bytes of \`data\`, or no figure.

${machine()}

${table(['package', 'version'], versions())}

## Goals

${goalsTable(sections)}

![Chart of the measurements](latest.svg)

${sections.map(sectionText).join('\n')}`;
}

function machine(): string {
  const [cpu] = cpus();
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim();
  return `Machine: ${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 1024 ** 3)} GiB, Linux ${kernel}, Node ${process.version}.`;
}

/** The versions that ran: the product's own packages, then those of the peers. */
function versions(): string[][] {
  const product = createRequire(new URL('../../package.json', import.meta.url));
  const bench = createRequire(new URL('../package.json', import.meta.url));
  const read = (from: NodeJS.Require, name: string): string[] => {
    // Not every package exports its package.json; its folder is where it is found from.
    const folder = (from.resolve.paths(name) ?? []).map((path) => `${path}/${name}/package.json`);
    for (const file of folder) {
      try {
        return [name, JSON.parse(readFileSync(file, 'utf8')).version];
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      }
    }
    throw new Error(`${name} is not installed`);
  };
  return [
    ...['graphql', 'graphql-yoga', 'graphql-ws', 'ws', 'dataloader', 'undici', 'ioredis'].map((name) =>
      read(product, name),
    ),
    ...['mercurius', 'graphql-jit', 'fastify', '@apollo/server', 'graphql'].map((name) => {
      const [, version = ''] = read(bench, name);
      return [name === 'graphql' ? 'graphql (Mercurius, Apollo Server)' : name, version];
    }),
  ];
}
