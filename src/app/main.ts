import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { install } from 'undici';
import { entropy } from '../common/entropy.ts';
import type { Logger } from '../common/logger.ts';
import { createLogger } from '../observability/logger.ts';
import { readEnvironment } from './config.ts';
import { doubtsOf, readMisspellings, weaknessesOf } from './config-hints.ts';
import { configure, isLocalhost } from './configure.ts';
import { leftLogHint, newRecordHint, prepareDataFolder, refuseOtherStore } from './data-folder.ts';
import type { Demo } from './demo.ts';
import { buildServer } from './gateway.ts';
import { listeningBy, type Program, runProgram } from './lifecycle.ts';
import type { ServerConfig } from './server-config.ts';
import { longestEndMs } from './shutdown.ts';
import type { Variables } from './variables.ts';

// Code that uses `Request` or `fetch` then gets those of this undici. Node's built-in ones would load a second undici: a
// twentieth of a start.
install();

// Once most objects that one place in the code has made outlive V8's young generation, V8 makes later ones in the old generation at
// once. Objects of payments outlive it, because they wait for the disk. After a hundred payments V8 would keep what each read holds
// until the next full collection, and a join would take half as much CPU again (W21 of the bench).
setFlagsFromString('--no-allocation-site-pretenuring');

type Opened = Program['opened'];

/** What the end of a gateway waits for. */
const inFlight = ({ shutdown, operationTimeoutMs }: ServerConfig): string => {
  const seconds = Math.ceil(longestEndMs(shutdown, operationTimeoutMs) / 1_000);
  return `requests, payments and sockets, about ${seconds} seconds at most`;
};

/**
 * Returns the settings of a gateway on the embedded sandbox. Variables that are not set are chosen for exploring, and nothing
 * stays on disk.
 */
async function configureDemo(variables: Variables, demo: Demo, opened: Opened): Promise<ServerConfig> {
  let dataDir = variables.DATA_DIR;
  if (dataDir === undefined) {
    const temporary = await mkdtemp(join(tmpdir(), 'pasarela-'));
    opened(() => rm(temporary, { recursive: true, force: true }));
    dataDir = temporary;
  }
  const config = configure(variables, demo.upstreamUrl);
  return {
    ...config,
    dataDir,
    publicUrl: variables.PUBLIC_URL ?? 'self',
    allowsOrigin: variables.CORS_ORIGINS === undefined ? isLocalhost : config.allowsOrigin,
    introspection: variables.INTROSPECTION ?? true,
    upstreamReport: variables.UPSTREAM_REPORT ?? true,
    workbench:
      variables.GRAPHIQL === false
        ? undefined
        : {
            sandbox: { sandboxUrl: demo.upstreamUrl, isOwnHost: demo.isOwnHost },
            auth: variables.AUTH_MODE,
          },
  };
}

/** The SDK is loaded only if a collector is named, because it would slow down every other start. */
async function openTracing(
  variables: Variables,
  logger: Logger,
  opened: Opened,
): Promise<ServerConfig['tracing']> {
  const endpoint = variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  const { startTracing } = await import('../observability/tracing.ts');
  const tracing = startTracing(endpoint, logger);
  opened(() => tracing.stop());
  return tracing;
}

/** Returns the hosts to which the sandbox may deliver: the gateway's own names, and those that the variable names. */
const webhookHostsOf = ({ HOST, PUBLIC_URL, SANDBOX_WEBHOOK_HOSTS }: Variables): readonly string[] => [
  ...SANDBOX_WEBHOOK_HOSTS,
  ...[`http://${HOST.includes(':') ? `[${HOST}]` : HOST}`, PUBLIC_URL ?? '']
    .filter((url) => URL.canParse(url))
    .map((url) => new URL(url).hostname),
];

await runProgram(async ({ opened, logsTo }) => {
  const variables = readEnvironment();
  const logger = createLogger(variables.LOG_LEVEL);
  logsTo(logger);
  const doubts = doubtsOf(variables).map(({ text, cure }) => `${text} ${cure}`);
  for (const hint of [...weaknessesOf(variables), ...doubts, ...readMisspellings()]) logger.warn({}, hint);
  const tracing = await openTracing(variables, logger, opened);

  if (variables.UPSTREAM_URL !== undefined) {
    const config = configure(variables, variables.UPSTREAM_URL);
    await prepareDataFolder(config.dataDir);
    await refuseOtherStore(config);
    const hint = newRecordHint(config) ?? leftLogHint(config);
    if (hint !== undefined) logger.warn({}, hint);
    const server = buildServer({ ...config, tracing }, logger);
    opened(() => server.stop(), inFlight(config));
    logger.info({ url: await server.start(), upstream: variables.UPSTREAM_URL }, 'Pasarela is listening');
    return;
  }

  // Loaded here, because most of the source files are the sandbox's.
  const { startDemo } = await import('./demo.ts');
  // Otherwise a log that outlives the sandbox would take messages of its next start for those of this one.
  const lasting = variables.DATA_DIR !== undefined || variables.REDIS_URL !== undefined;
  const demo = await startDemo({
    ...(lasting ? { run: entropy.uuid() } : {}),
    port: variables.SANDBOX_PORT,
    speed: variables.SANDBOX_SPEED,
    seed: variables.SANDBOX_SEED,
    hosts: variables.SANDBOX_HOSTS,
    webhookHosts: webhookHostsOf(variables),
    customers: variables.SANDBOX_CUSTOMERS,
  }).catch(listeningBy('SANDBOX_PORT'));
  opened(() => demo.stop());
  const config = await configureDemo(variables, demo, opened);
  await prepareDataFolder(config.dataDir);
  const server = buildServer({ ...config, tracing }, logger);
  opened(() => server.stop(), inFlight(config));
  const url = await server.start();
  await demo.registerWebhooks(server.ingress);
  process.stdout.write(demo.welcome(url));
});
