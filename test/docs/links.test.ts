import { access, readdir } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { anchors, ROOT, readPage } from './pages.ts';

const RECORDS = [
  '0001-graphql-js-with-planned-queries.md',
  '0002-a-stream-with-a-chain.md',
  '0003-the-callers-key-names-the-payment.md',
  '0004-the-upstream-says-who-is-calling.md',
  '0005-a-sandbox-that-shares-no-code.md',
  '0006-typescript-without-a-build.md',
  '0007-a-workbench-that-is-checked-in-built.md',
  '0008-a-package-that-is-bundled.md',
].map((name) => `docs/decisions/${name}`);

const { repository } = JSON.parse(await readPage('package.json'));
/** Where the files of the project are for those who have no checkout. */
const PUBLISHED = `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/`;

/** A page for each library that an app may use. */
const LIBRARIES = (await readdir(new URL('docs/clients', ROOT))).map((name) => `docs/clients/${name}`);

it.each([
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'PROTOCOL.md',
  'README.md',
  'SECURITY.md',
  'bench/README.md',
  'docs/configuration.md',
  'docs/authentication.md',
  'docs/assumptions.md',
  'docs/upstream-api.md',
  'docs/graph.md',
  'docs/layers.md',
  'docs/glossary.md',
  'docs/events.md',
  'docs/sandbox.md',
  'docs/payments.md',
  'docs/unknown-payments.md',
  'docs/pagos.md',
  'docs/clients.md',
  'docs/comparison.md',
  'docs/troubleshooting.md',
  ...LIBRARIES,
  'src/graphql/executor/README.md',
  'packages/client/README.md',
  'packages/client/src/README.md',
  'packages/sandbox/README.md',
  'examples/mobile/README.md',
  'examples/web/README.md',
  'examples/receiver/README.md',
  'docs/operations.md',
  'docs/kubernetes.md',
  'docs/proxies.md',
  'docs/sizing.md',
  'docs/secrets.md',
  'docs/personal-data.md',
  'docs/forwarding.md',
  'docs/refunds.md',
  'docs/redis.md',
  'docs/monitoring.md',
  'docs/alerts.md',
  'docs/missing-events.md',
  'docs/old-answers.md',
  'docs/failover.md',
  'docs/package.md',
  'docs/upgrading.md',
  'docs/decisions/README.md',
  ...RECORDS,
])('every link of %s leads somewhere', async (name) => {
  const page = await readPage(name);
  for (const [, target = ''] of page.matchAll(/\]\(([^)\s]+)\)/g)) {
    // A page that npm shows names those beside it by where they are published.
    const own = target.startsWith(PUBLISHED);
    if (/^https?:/.test(target) && !own) continue;
    const [path = '', anchor] = (own ? target.slice(PUBLISHED.length) : target).split('#');
    const file = path === '' ? new URL(name, ROOT) : new URL(path, own ? ROOT : new URL(name, ROOT));
    await expect(access(file), target).resolves.toBeUndefined();
    if (anchor !== undefined) expect(anchors(await readPage(file.href)), target).toContain(anchor);
  }
});

it.each(RECORDS)(
  '%s says what was asked, chosen and why, what it costs, and what would change it',
  async (name) => {
    const page = await readPage(name);
    for (const part of ['question', 'choice', 'Why', 'costs', 'change it']) {
      expect(page).toMatch(new RegExp(`^\\*\\*[\\w ]*${part}\\.\\*\\* `, 'm'));
    }
    expect(await readPage('docs/decisions/README.md')).toContain(name.replace('docs/decisions/', ''));
  },
);
