import process from 'node:process';

/** The oldest Node that the sources are tested on; package.json brings it along. */
const OLDEST = 26;

/**
 * What to type instead, where what runs this is an older Node, or Bun or Deno, whose own network and modules the gateway is not tested
 * on. Plain JavaScript, and without an import that an old Node lacks: it is the first thing that runs.
 *
 * @param {string} instead a command that brings the right Node
 * @returns {string | undefined} undefined where it is a Node that is new enough
 */
export function adviceOnNode(instead) {
  const { bun, deno, node } = process.versions;
  const other = bun !== undefined ? `Bun ${bun}` : deno !== undefined ? `Deno ${deno}` : undefined;
  if (other === undefined && Number(node.split('.')[0]) >= OLDEST) return undefined;
  return `Pasarela runs on Node ${OLDEST} or later, and this is ${other ?? process.version}. Type instead, which brings the right one:\n\n  ${instead}\n`;
}

/**
 * Ends the process with `adviceOnNode`, where there is any.
 *
 * @param {string} instead
 */
export function requireNode(instead) {
  const advice = adviceOnNode(instead);
  if (advice === undefined) return;
  process.stderr.write(advice);
  process.exit(1);
}
