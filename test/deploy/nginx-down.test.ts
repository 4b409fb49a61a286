import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { startFleet } from '../helpers/fleet.ts';
import { makeCertificates } from '../helpers/private-ca.ts';
import { listens, startProxy, writeProxies } from '../helpers/proxies.ts';
import { freePort } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';

const LIFETIME_SECONDS = 900;
/** Queries that are under way at once. */
const AT_ONCE = 8;
const REQUESTS = 'pasarela_http_request_duration_seconds_count';

it('nginx answers no POST with 502 where a gateway was marked down before it is ended', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-nginx-'));
  const certificates = await makeCertificates(folder);
  const agent = new Agent({ connect: { ca: await readFile(certificates.authority, 'utf8') } });
  const fleet = await startFleet(LIFETIME_SECONDS);
  const [haproxyPort, nginxPort] = [await freePort(), await freePort()];
  const ports = [await freePort(), await freePort()] as const;
  const start = (port: number) => fleet.start({ PORT: String(port) });
  let first = await start(ports[0]);
  await start(ports[1]);
  const { nginx: args } = await writeProxies(folder, { haproxyPort, nginxPort, ports, certificates });
  const nginx = startProxy('nginx', args, LIFETIME_SECONDS);
  onTestFinished(async () => {
    nginx.kill('SIGTERM');
    await agent.destroy();
    await fleet[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  await until(() => listens(nginxPort));

  let isOver = false;
  const statuses = new Map<string, number>();
  const ask = async () => {
    while (!isOver) {
      const status = await request(`https://127.0.0.1:${nginxPort}/graphql`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${fleet.sandbox.accessToken}`,
        },
        body: JSON.stringify({ query: '{ client { id } }' }),
        dispatcher: agent,
      }).then(
        async ({ statusCode, body }) => {
          await body.dump();
          return String(statusCode);
        },
        (error: Error) => error.message,
      );
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const asking = Array.from({ length: AT_ONCE }, ask);
  const answered = () => [...statuses.values()].reduce((sum, count) => sum + count, 0);
  const reload = async (change: (text: string) => string) => {
    const file = join(folder, 'nginx.conf');
    await writeFile(file, change(await readFile(file, 'utf8')));
    nginx.kill('SIGHUP');
  };
  const requests = () => first.metric(REQUESTS, 'path="/graphql"');
  /** Whether the gateway gets requests, while a hundred more are answered. */
  const getsSome = async () => {
    const [before, seen] = [await requests(), answered()];
    await until(() => answered() > seen + 100);
    return (await requests()) > before;
  };

  await until(getsSome);
  const server = `server 127.0.0.1:${ports[0]} max_fails=0;`;
  await reload((text) => text.replace(server, `${server.slice(0, -1)} down;`));
  await until(async () => !(await getsSome()));
  await first.program.end('SIGTERM');
  first = await start(ports[0]);
  await reload((text) => text.replace(' down;', ';'));
  await until(getsSome);
  isOver = true;
  await Promise.all(asking);
  expect(statuses.get('200')).toBeGreaterThan(200);
  // A connection that nginx closed is no answer, and nginx passed on nothing of it.
  expect([...statuses.keys()].filter((status) => /^\d+$/.test(status))).toEqual(['200']);
});
