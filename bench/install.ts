/** Installs the peers where they are missing, with the npm that runs this script, and builds what W6 measures beside the sources. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
if (!existsSync(new URL('node_modules/mercurius/package.json', import.meta.url))) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}

spawnSync(process.execPath, ['scripts/build.ts'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  stdio: 'inherit',
});
