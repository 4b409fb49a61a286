import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../packages/sandbox/src/index.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { type Program, startProgram } from '../helpers/program.ts';
import { DURABLE, endWithThisProcess, startRedis } from '../helpers/redis.ts';
import { freePort } from '../helpers/restartable.ts';

const SECRET = 'a secret for tests that is long enough';

/** Gateways as processes of their own, each on one port however often it is restarted, and one sandbox behind them. */
export interface Gateways extends AsyncDisposable {
  readonly sandbox: Sandbox;
  /** Of those that run. */
  readonly ports: readonly number[];
  /** Ends one of them, and starts it again a while later. Resolves once it is back. */
  restart(signal: 'SIGKILL' | 'SIGTERM', meanwhile?: () => Promise<void>): Promise<void>;
  /** Forgets every event. Resolves once they are back. */
  loseLog(): Promise<void>;
  /** Delivers a webhook until it is answered 201. */
  deliver(body: object): Promise<void>;
}

export interface GatewaysOptions {
  /** Behind a Redis there are two; with its own log there is one. */
  readonly redis: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  readonly choices?: NonNullable<SandboxOptions['choices']>;
  readonly lifetimeSeconds: number;
}

export async function startGateways(options: GatewaysOptions): Promise<Gateways> {
  const { choices = {}, lifetimeSeconds, environment = {} } = options;
  const sandbox = await startSandbox({ port: 0, speed: 60, seed: 1, choices });
  const redis = options.redis ? await startRedis(DURABLE, undefined, lifetimeSeconds) : undefined;
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-client-'));
  const programs = new Map<number, Program | undefined>();
  const running = () => [...programs].filter(([, program]) => program !== undefined).map(([port]) => port);

  const start = async (port: number): Promise<void> => {
    const program = startProgram('src/start.js', {
      PORT: String(port),
      UPSTREAM_URL: sandbox.url,
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      WEBHOOK_SECRET: SECRET,
      DATA_DIR: dataDir,
      ...(redis && { REDIS_URL: redis.url }),
      ...environment,
    });
    endWithThisProcess(program.process, lifetimeSeconds);
    await program.says(/Pasarela is listening|"url":"http/);
    programs.set(port, program);
  };
  const end = async (port: number, signal: NodeJS.Signals): Promise<void> => {
    const program = programs.get(port);
    programs.set(port, undefined);
    await program?.end(signal);
  };
  for (let count = options.redis ? 2 : 1; count > 0; count -= 1) await start(await freePort());
  let turn = 0;

  return {
    sandbox,
    get ports() {
      return running();
    },
    async restart(signal, meanwhile = async () => {}) {
      const ports = [...programs.keys()];
      const port = ports[turn % ports.length] ?? 0;
      turn += 1;
      await end(port, signal);
      await meanwhile();
      await start(port);
    },
    async loseLog() {
      if (redis !== undefined) {
        await redis.admin.flushall();
        return;
      }
      const [port = 0] = programs.keys();
      await end(port, 'SIGKILL');
      await rm(dataDir, { recursive: true, force: true });
      await start(port);
    },
    async deliver(body) {
      for (;;) {
        const [port] = running();
        const address = ingressUrl(`http://127.0.0.1:${port}`, sandbox.clientId, 'STATUS_UPDATE', SECRET);
        const status = await fetch(address, { method: 'POST', body: JSON.stringify(body) }).then(
          (response) => response.status,
          () => 0,
        );
        if (status === 201) return;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...programs.keys()].map((port) => end(port, 'SIGKILL')));
      await sandbox.stop();
      await redis?.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
