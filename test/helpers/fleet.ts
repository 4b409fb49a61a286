import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import type { EventType } from '../../src/events/log.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { type GraphQLAnswer, sendQuery } from './gateway.ts';
import { type Program, startProgram } from './program.ts';
import { DURABLE, endWithThisProcess, type RedisServer, startRedis } from './redis.ts';

const SECRET = 'a secret for tests that is long enough';

/** One process of a gateway. */
export interface Member {
  readonly url: string;
  readonly graphql: string;
  readonly program: Program;
  /** The ingress of a type, with its signature. */
  addressOf(type: EventType): string;
  /** Posts a delivery as the provider does. */
  deliver(type: EventType, body: unknown): Promise<number>;
  /** The sum of a metric over its labels, or over those lines that hold `label`. */
  metric(name: string, label?: string): Promise<number>;
  query(document: string, variables?: Readonly<Record<string, unknown>>): Promise<GraphQLAnswer>;
}

/** A sandbox, a Redis, and gateways as processes of their own on both. */
export interface Fleet extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly redis: RedisServer;
  /**
   * Starts another process, on the data folder that all of them share.
   *
   * @param program of another version; default `src/start.js`
   */
  start(environment?: Readonly<Record<string, string>>, program?: string): Promise<Member>;
}

/** @param lifetimeSeconds after which whatever is still running is ended. */
export async function startFleet(lifetimeSeconds?: number): Promise<Fleet> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-fleet-'));
  const redis = await startRedis(DURABLE, undefined, lifetimeSeconds);
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const programs: Program[] = [];
  return {
    sandbox,
    redis,
    async start(environment = {}, file = 'src/start.js') {
      const program = startProgram(file, {
        PORT: '0',
        UPSTREAM_URL: sandbox.url,
        REDIS_URL: redis.url,
        WEBHOOK_SECRET: SECRET,
        DATA_DIR: dataDir,
        ...environment,
      });
      endWithThisProcess(program.process, lifetimeSeconds);
      programs.push(program);
      const [, url = ''] = await program.says(/"url":"([^"]+)"/);
      const graphql = `${url}/graphql`;
      const addressOf = (type: EventType) => ingressUrl(url, sandbox.clientId, type, SECRET);
      return {
        url,
        graphql,
        program,
        addressOf,
        async deliver(type, body) {
          const response = await fetch(addressOf(type), {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          });
          await response.arrayBuffer();
          return response.status;
        },
        metric: (name, label = '') => readMetric(url, name, label),
        query: (document, variables = {}) =>
          sendQuery(graphql, document, variables, { authorization: `Bearer ${sandbox.accessToken}` }),
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(programs.map((program) => program.end('SIGKILL')));
      await sandbox.stop();
      await redis.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The sum of a metric of a gateway over the lines that hold `label`; 0 where there is none yet. */
export async function readMetric(url: string, name: string, label = ''): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.split(/[{ ]/, 1)[0] === name && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

/** The place after the newest event, as the sandbox's own client is told it, or whoever has another token. */
export async function headOf(member: Member, token?: string): Promise<string> {
  const { data } =
    token === undefined
      ? await member.query('{ eventCursor }')
      : await sendQuery(member.graphql, '{ eventCursor }', {}, { authorization: `Bearer ${token}` });
  return data.eventCursor;
}

/** A message of a provider. */
export interface Delivery {
  readonly type: EventType;
  readonly body: object;
}

const statusUpdate = (id_msg: string): Delivery => ({ type: 'STATUS_UPDATE', body: { id_msg } });

/** A credit to an owner (docs/upstream-api.md, "Events"), as far as it has to be whole. */
export const creditTo = (owner_id: string, id_msg: string): Delivery => ({
  type: 'MONEY_IN',
  body: { id_msg, msg_name: 'MONEY_IN', body: { id: randomUUID(), amount: '1.00', owner_id } },
});

/** A provider that delivers one message after another until each is answered 201, as steadily as it is answered. */
export interface Provider {
  /** Ids of the messages answered 201, in the order of the answers. */
  readonly answered: readonly string[];
  stop(): Promise<void>;
}

/**
 * @param to whom the next delivery goes; one that is not answered 201 goes there again.
 * @param lanes deliveries in flight at once
 * @param message makes the message of an id
 */
export function startProvider(
  to: () => Member,
  lanes: number,
  pauseMs = 0,
  message: (id: string) => Delivery = statusUpdate,
): Provider {
  const answered: string[] = [];
  let running = true;
  const lane = async (): Promise<void> => {
    while (running) {
      const id_msg = randomUUID();
      const { type, body } = message(id_msg);
      // What is in flight when the provider stops is still delivered to the end.
      for (let status = 0; status !== 201; ) {
        status = await to()
          .deliver(type, body)
          .catch(() => 0);
        if (status !== 201) await new Promise((resolve) => setTimeout(resolve, 20));
      }
      answered.push(id_msg);
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  const done = Promise.all(Array.from({ length: lanes }, lane));
  return {
    answered,
    async stop() {
      running = false;
      await done;
    },
  };
}
