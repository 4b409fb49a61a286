// Completes package-lock.json files with the optional packages of other platforms that npm left out when it wrote them
// (npm/cli#4828): `npm ci` refuses a lock file that lacks one. Run it after every change of dependencies:
//
//   npm run fix:lock
//
// With --check it changes nothing, and fails where something is missing.
import { globSync, readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
];
const PROCESSORS = [
  'arm',
  'arm64',
  'ia32',
  'loong64',
  'mips64el',
  'ppc64',
  'riscv64',
  's390x',
  'x64',
  'wasm32',
];

/** What a platform package's name says of where it runs: `@biomejs/cli-linux-x64-musl` is linux, x64, musl. */
function platformOf(name) {
  const parts = name.split(/[-/]/);
  const os = SYSTEMS.find((system) => parts.includes(system)) ?? (name === 'fsevents' ? 'darwin' : undefined);
  const cpu = PROCESSORS.find((processor) => parts.includes(processor));
  const libc = parts.some((part) => part.startsWith('musl'))
    ? 'musl'
    : parts.some((part) => part.startsWith('gnu'))
      ? 'glibc'
      : undefined;
  return { ...(cpu && { cpu: [cpu] }), ...(os && { os: [os] }), ...(libc && { libc: [libc] }) };
}

const checking = process.argv.includes('--check');
const files = globSync('{.,bench,examples/*,test/*}/package-lock.json');

for (const file of files) {
  const lock = JSON.parse(readFileSync(file, 'utf8'));
  const { packages } = lock;
  const added = [];
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const known = [`${path}/node_modules/${name}`, `node_modules/${name}`].some(
        (place) => place in packages,
      );
      if (known || path === '') continue;
      const dev = entry.dev || entry.devOptional ? { dev: true } : {};
      packages[`node_modules/${name}`] = {
        version: version.replace(/^[~^]/, ''),
        ...platformOf(name),
        ...dev,
        optional: true,
      };
      added.push(name);
    }
  }
  if (checking && added.length > 0) {
    console.error(`${file} lacks ${added.join(', ')}: npm ci would refuse it. Run npm run fix:lock.`);
    process.exitCode = 1;
  } else if (added.length > 0) {
    const sorted = Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
    console.log(`${file}: ${added.length} added`);
  }
}
