/**
 * Returns what to do where this Node is older than `engines` in package.json says, or where it is Bun, which puts an undici of its own in the
 * place of the one that delivers webhooks: none arrives. Undefined where it is neither.
 */
export function adviceOnNode(): string | undefined {
  const { bun, node } = process.versions;
  const [major = 0, minor = 0] = node.split('.').map(Number);
  if (bun === undefined && (major > 22 || (major === 22 && minor >= 19))) return undefined;
  return `The sandbox runs on Node 22.19 or later; this is ${bun === undefined ? node : `Bun ${bun}`}. One comes by
  npx -p node@26 -p @pasarela/sandbox pasarela-sandbox
and in a project, for npm scripts and npx node --test, by
  npm install --save-dev node@26`;
}
