import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, sendQuery } from './gateway.ts';
import { type Program, startProgram } from './program.ts';
import { until } from './until.ts';

export interface RestartableGateway extends AsyncDisposable {
  /** Address of `/graphql`, the same after every restart. */
  readonly graphql: string;
  readonly sandbox: Sandbox;
  /** Starts the gateway's process, and resolves once it is ready. */
  start(): Promise<void>;
  /** Ends the gateway's process with SIGKILL. */
  kill(): Promise<void>;
  /** Forgets every event, as a gateway does that has lost its disk. Only while it is not running. */
  loseLog(): Promise<void>;
  /** Lets a credit arrive at the sandbox, which tells the gateway as soon as it can be reached. */
  credit(concept: string): Promise<void>;
  /** Resolves once every notification so far has been answered. */
  allDelivered(): Promise<void>;
}

/**
 * A gateway as a process of its own, on one port and one folder of data however often it is restarted, in front of a
 * sandbox that outlives it.
 */
export async function startRestartable(
  environment: Readonly<Record<string, string>> = {},
  choices: NonNullable<SandboxOptions['choices']> = {},
): Promise<RestartableGateway> {
  // By the sandbox's own number it gives a delivery up after 42 s. A gateway may take as long to start.
  const patient = { deliveryRetries: 12, ...choices };
  const sandbox = await startSandbox({ port: 0, speed: 60, seed: 1, choices: patient });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const graphql = `${url}/graphql`;
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-restart-'));
  const seeded = await control(sandbox, 'GET', '/sandbox');
  let program: Program | undefined;

  const start = async () => {
    program = startProgram('src/start.js', {
      PORT: String(port),
      UPSTREAM_URL: sandbox.url,
      PUBLIC_URL: url,
      WEBHOOK_SECRET: 'a secret for tests that is long enough',
      DATA_DIR: dataDir,
      ...environment,
    });
    await program.says(/Pasarela is listening/);
  };
  const kill = async () => {
    await program?.end('SIGKILL');
    program = undefined;
  };
  const clear = () => rm(dataDir, { recursive: true, force: true });

  await start();
  for (const type of ['CEP', 'MONEY_IN']) {
    const { data, errors } = await sendQuery(
      graphql,
      `mutation ($type: WebhookTypeInput!) { createWebhook(input: { type: $type }) { __typename } }`,
      { type },
      // A gateway may take longer to start than the token of the sandbox's own start lives.
      { authorization: `Bearer ${(await control(sandbox, 'GET', '/sandbox')).accessToken}` },
    );
    if (data?.createWebhook?.__typename !== 'CreateWebhookSuccess')
      throw new Error(JSON.stringify({ data, errors }));
  }
  return {
    graphql,
    sandbox,
    start,
    kill,
    loseLog: clear,
    credit: (concept) =>
      control(sandbox, 'POST', '/sandbox/spei-credits', {
        clabe: seeded.accounts[0].clabe,
        amount: '1250.00',
        payerName: 'Ana Torres',
        concept,
      }),
    async allDelivered() {
      await until(async () => {
        const { deliveries } = await control(sandbox, 'GET', '/sandbox/deliveries');
        return deliveries.every(({ state }: { state: string }) => state === 'ANSWERED');
      });
    },
    async [Symbol.asyncDispose]() {
      await kill();
      await sandbox.stop();
      await clear();
    },
  };
}

/** Below the ports that Linux gives to connections and to servers that ask for any (32,768 and higher), above those that browsers refuse (10,080). */
const PORTS = { from: 11_000, count: 21_000 };

/** A port that is free, and that no connection and no server that takes any port is given before it is listened on, or between two starts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.from + Math.floor(Math.random() * PORTS.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
