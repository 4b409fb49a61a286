import { readFileSync } from 'node:fs';
import { z } from 'zod';

/**
 * Fails when more than one copy of `graphql` would be installed: each has classes of its own, and a type of the one is
 * none to the other.
 */
const Lock = z.object({ packages: z.record(z.string(), z.unknown()) });

const text = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8');
const copies = Object.keys(Lock.parse(JSON.parse(text)).packages).filter((path) =>
  /(^|\/)node_modules\/graphql$/.test(path),
);

if (copies.length !== 1) {
  process.stderr.write(
    `One copy of graphql is wanted; the lock file has ${copies.length}: ${copies.join(', ')}.\n`,
  );
  process.exitCode = 1;
}
