import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { ConfigError, readEnvironment, type Variables } from './config.ts';
import { type Demo, startDemo } from './demo.ts';
import { buildServer, type ServerConfig } from './server.ts';

/** Something that is open and must be closed when the process ends, last opened first closed. */
type Closer = () => Promise<unknown>;

/** Fills in what depends on the sandbox: without `UPSTREAM_URL` everything needed is made here, and gone at the end. */
async function configure(variables: Variables, closers: Closer[]): Promise<[ServerConfig, Demo?]> {
  const common = {
    host: variables.HOST,
    port: variables.PORT,
    upstreamTimeoutMs: variables.UPSTREAM_TIMEOUT_MS,
    operationTimeoutMs: variables.OPERATION_TIMEOUT_MS,
    upstreamUtcOffset: variables.UPSTREAM_UTC_OFFSET,
    tokenClientClaims: variables.UPSTREAM_TOKEN_CLIENT_CLAIM,
    redisUrl: variables.REDIS_URL,
    eventsRetention: variables.EVENTS_RETENTION,
    webhookSecrets: variables.WEBHOOK_SECRET ?? ([randomBytes(32).toString('base64url')] as const),
    webhookTokenHeader: variables.WEBHOOK_TOKEN_HEADER,
    moneyInDecisionUrl: variables.MONEY_IN_DECISION_URL,
  };
  const origins = variables.CORS_ORIGINS;
  if (variables.UPSTREAM_URL !== undefined) {
    const config = {
      ...common,
      upstreamUrl: variables.UPSTREAM_URL,
      dataDir: variables.DATA_DIR ?? './data',
      publicUrl: variables.PUBLIC_URL,
      allowsOrigin: (origin: string) => origins?.includes(origin) ?? false,
      introspection: variables.INTROSPECTION ?? false,
      upstreamReport: variables.UPSTREAM_REPORT ?? false,
      graphiql: variables.GRAPHIQL === true ? { title: 'Pasarela' } : undefined,
    };
    return [config];
  }

  const demo = await startDemo({
    port: variables.SANDBOX_PORT,
    speed: variables.SANDBOX_SPEED,
    seed: variables.SANDBOX_SEED,
  });
  closers.push(() => demo.stop());
  let dataDir = variables.DATA_DIR;
  if (dataDir === undefined) {
    const temporary = await mkdtemp(join(tmpdir(), 'pasarela-'));
    closers.push(() => rm(temporary, { recursive: true, force: true }));
    dataDir = temporary;
  }
  const config = {
    ...common,
    upstreamUrl: demo.upstreamUrl,
    dataDir,
    publicUrl: variables.PUBLIC_URL ?? ('self' as const),
    allowsOrigin: (origin: string) => origins?.includes(origin) ?? isLocalhost(origin),
    introspection: variables.INTROSPECTION ?? true,
    upstreamReport: variables.UPSTREAM_REPORT ?? true,
    graphiql: variables.GRAPHIQL === false ? undefined : demo.graphiql,
  };
  return [config, demo];
}

const isLocalhost = (origin: string): boolean =>
  URL.canParse(origin) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(origin).hostname);

/** Says in one line what a person can do about an error of the start. */
function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof Error && 'code' in error && 'port' in error) {
    const { code, port } = error;
    const address = 'address' in error ? `${String(error.address)}:${String(port)}` : String(port);
    if (code === 'EADDRINUSE') {
      return `${address} is in use by another process. Choose other ports with PORT and SANDBOX_PORT.`;
    }
    if (code === 'EACCES')
      return `${address} needs rights that this process does not have. Choose a PORT over 1023.`;
    if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine. Choose another HOST.`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

async function run(): Promise<void> {
  const variables = readEnvironment();
  const logger = pino({ level: variables.LOG_LEVEL });
  const closers: Closer[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closers.splice(0).reverse()) await close();
  };

  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal means: now.
      if (stopping) process.exit(130);
      stopping = true;
      void stop().then(() => process.exit(0));
    });
  }

  try {
    const [config, demo] = await configure(variables, closers);
    const server = buildServer(config, logger);
    closers.push(() => server.stop());
    const url = await server.start();
    if (demo === undefined) {
      logger.info({ url, upstream: config.upstreamUrl }, 'Pasarela is listening');
    } else {
      await demo.registerWebhooks(server.ingress);
      process.stdout.write(demo.welcome(url));
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

run().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`);
  process.exit(1);
});
