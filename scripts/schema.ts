import { readFile, writeFile } from 'node:fs/promises';
import { printSchema } from 'graphql';
import { buildSchema } from '../src/schema/index.ts';

/** Writes the graph's SDL to `schema.graphql` at the root. With `--check` it only compares, and fails where they differ. */
const file = new URL('../schema.graphql', import.meta.url);
const printed = `${printSchema(buildSchema())}\n`;

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '');
  if (committed !== printed) {
    const [was, is] = [committed.split('\n'), printed.split('\n')];
    const line = is.findIndex((text, index) => text !== was[index]);
    const at = line === -1 ? is.length : line;
    process.stderr.write(
      `schema.graphql differs from the code. Run "npm run schema" and commit it. First difference, line ${at + 1}:\n` +
        `  committed: ${was[at] ?? '(end of file)'}\n  code:      ${is[at] ?? '(end of file)'}\n`,
    );
    process.exitCode = 1;
  }
} else {
  await writeFile(file, printed);
}
