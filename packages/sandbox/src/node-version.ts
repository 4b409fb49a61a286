/** Returns what to do where this Node is older than `engines` in package.json says; undefined where it is not. */
export function adviceOnNode(): string | undefined {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return undefined;
  return `The sandbox runs on Node 22.19 or later; this is ${process.versions.node}. One comes by
  npx -p node@26 -p @pasarela/sandbox pasarela-sandbox
and in a project, for npm scripts and npx node --test, by
  npm install --save-dev node@26`;
}
