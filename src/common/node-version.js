import process from 'node:process';

/** The oldest Node that the sources are tested on; package.json brings it along. */
const OLDEST = 26;

/**
 * Ends the process with what to type instead, where the Node that runs it cannot run the sources. Plain JavaScript, and
 * without an import that an old Node lacks: it is the first thing that runs.
 *
 * @param {string} instead a command that brings the right Node
 */
export function requireNode(instead) {
  if (Number(process.versions.node.split('.')[0]) >= OLDEST) return;
  process.stderr.write(
    `Pasarela runs on Node ${OLDEST} or later, and this is ${process.version}. Type instead, which brings the right one:\n\n  ${instead}\n`,
  );
  process.exit(1);
}
