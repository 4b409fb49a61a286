import { spawnSync } from 'node:child_process';

/** Ends the command at once, with what to do, when there is neither redis-server nor valkey-server. */
const found = ['redis-server', 'valkey-server'].some((server) => {
  const { status } = spawnSync(server, ['--version'], { stdio: 'ignore' });
  return status === 0;
});

if (!found) {
  console.error(
    'A real Redis of its own is started here, and neither redis-server nor valkey-server is on the PATH.\n' +
      'Install one first: npm run setup:redis   (or: apt-get install redis-server, brew install redis)',
  );
  process.exit(1);
}
