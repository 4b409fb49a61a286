import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Sandbox, startSandbox } from '#sandbox';
import { NAMED_FAULTS } from '../../../packages/sandbox/src/faults.ts';
import { ingressUrl } from '../../../src/ingress/addresses.ts';
import { control, sendQuery } from '../../helpers/gateway.ts';
import { leads } from '../../helpers/nemesis.ts';
import { type Program, startProgram } from '../../helpers/program.ts';
import { DURABLE, endWithThisProcess, startRedis } from '../../helpers/redis.ts';
import { startWithSentinel } from '../../helpers/redis-topologies.ts';
import { freePort } from '../../helpers/restartable.ts';
import { callerToken, serviceEnvironment } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { counted, type Intent, KINDS, type Kind, settled } from './settling-judge.ts';

const SECRET = 'a secret for tests that is long enough';
const PATHS: Record<Kind, string> = {
  createMoneyOut: '/v1/transactions/money_out',
  createInternalTransaction: '/v1/transactions/internal_transaction',
  createPennyValidation: '/v1/transactions/penny_validation',
  refundTransaction: '/v1/clients/*/transactions/*/refund',
};
/** What happens to requests that pay, each a few times in a row; nothing that makes them wait. */
const FAULTS = [
  ...NAMED_FAULTS.filter((name) => name !== 'hang'),
  { status: 503 },
  { status: 503, commit: true },
];
const PAYERS = 8;

/** What was found in the end. */
export interface Findings {
  readonly intents: number;
  /** How many of each kind were told what, when they were asked for. */
  readonly told: Readonly<Record<string, number>>;
  /** How many of each kind ended in which state, and whether the money has moved. */
  readonly ended: Readonly<Record<string, number>>;
  readonly kills: number;
  /** How often an app was told that nothing had moved, or found no gateway, and asked again. */
  readonly askedAgain: number;
  /** Each of these is a fault, in a sentence. */
  readonly lies: readonly string[];
  /** Until nothing changed any more after the service was back, in ms. */
  readonly settledInMs: number;
}

interface Options {
  readonly intents: number;
  readonly random: () => number;
  /** Whether a failover of Redis is among the faults. */
  readonly failover: boolean;
  /** How long the payments have to be settled once the service is back, in milliseconds. */
  readonly withinMs: number;
  readonly lifetimeSeconds?: number;
}

/** Two gateways in service mode, whose payments are interrupted at random, and whose apps never come back. The sandbox's ledger is the judge. */
export async function interruptPayments({
  intents: count,
  random,
  failover,
  withinMs,
  lifetimeSeconds,
}: Options): Promise<Findings> {
  await using stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-settling-'));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const sentinel = failover ? stack.use(await startWithSentinel([], lifetimeSeconds)) : undefined;
  const plain = failover ? undefined : await startRedis(DURABLE, undefined, lifetimeSeconds);
  if (plain !== undefined) stack.defer(() => plain.stop());
  const sandbox = await startSandbox({ port: 0, speed: 10, seed: 1 });
  stack.defer(() => sandbox.stop());
  const gateways = await Promise.all(
    [0, 1].map(() => startMember(sandbox, sentinel?.url ?? plain?.url ?? '', dataDir, lifetimeSeconds)),
  );
  stack.defer(async () => {
    for (const gateway of gateways) await gateway.kill();
  });
  const token = await callerToken();
  const ask = (graphql: string, document: string, variables: Readonly<Record<string, unknown>>) =>
    sendQuery(graphql, document, variables, { authorization: `Bearer ${token}` });
  const intents = await makeIntents(sandbox, count);

  let isOver = false;
  let kills = 0;
  let askedAgain = 0;
  const waiting = [...intents];
  const some = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const payer = async (): Promise<void> => {
    for (let intent = waiting.shift(); intent !== undefined; intent = waiting.shift()) {
      const name = intent.kind[0]?.toUpperCase() + intent.kind.slice(1);
      const document = `mutation ($input: ${name}Input!) { paid: ${intent.kind}(input: $input) { __typename } }`;
      for (;;) {
        const input = { idempotencyKey: intent.key, ...intent.input };
        const asking = ask(some(gateways).graphql, document, { input });
        const answer = await asking.catch((error: unknown) => (isRefused(error) ? 'refused' : 'lost'));
        const nothing = answer === 'refused' || codeOf(answer) !== undefined;
        if (!nothing) {
          intent.told = answer === 'lost' ? answer : (answer.data?.paid?.__typename ?? 'Error');
          break;
        }
        // The same key again, as the documentation says: where the first gateway is killed before it could take its record back, the payment
        // stays open, and under another key neither of the two could be told from the other.
        askedAgain += 1;
        await pause(100);
      }
    }
  };
  const trouble = async (): Promise<void> => {
    while (!isOver) {
      const rule = { match: { method: 'POST', path: PATHS[some(KINDS)] }, fault: some(FAULTS), times: 3 };
      await control(sandbox, 'POST', '/sandbox/faults', rule);
      await pause(20 + random() * 60);
    }
  };
  const killer = async (): Promise<void> => {
    while (!isOver) {
      await pause(1_000 + random() * 1_500);
      const gateway = some(gateways);
      await gateway.kill();
      kills += 1;
      await gateway.start();
    }
  };
  const failingOver = async (): Promise<void> => {
    if (sentinel === undefined) return;
    await until(() => waiting.length < count / 2);
    await sentinel.primary.kill();
    await leads(sentinel, sentinel.replica);
    await sentinel.primary.start();
  };
  const troubles = [trouble(), killer()];
  await Promise.all([...Array.from({ length: PAYERS }, payer), failingOver()]);
  isOver = true;
  await Promise.all(troubles);
  await control(sandbox, 'DELETE', '/sandbox/faults');

  const backAt = performance.now();
  const ends = await settled(
    intents,
    (key) => ask(gateways[0]?.graphql ?? '', PAYMENT, { key }),
    sandbox,
    withinMs,
  );
  return {
    ...ends,
    intents: count,
    kills,
    askedAgain,
    told: counted(intents.map(({ kind, told }) => `${kind} ${told}`)),
    settledInMs: Math.round(performance.now() - backAt),
  };
}

/** Whether no gateway was there to ask. */
const isRefused = (error: unknown): boolean =>
  error instanceof Error && JSON.stringify(error.cause ?? '').includes('ECONNREFUSED');

/** The code of a top-level error, which says that nothing has moved. */
const codeOf = (answer: 'lost' | 'refused' | Awaited<ReturnType<typeof sendQuery>>) =>
  typeof answer === 'string' ? undefined : answer.errors?.[0]?.extensions['code'];

const PAYMENT =
  'query ($key: String!) { payment(idempotencyKey: $key) { state message safeToRetry transactionId } }';

interface Member {
  readonly graphql: string;
  start(): Promise<void>;
  kill(): Promise<void>;
}

/** A gateway that comes back on the port that it had. */
async function startMember(
  sandbox: Sandbox,
  redisUrl: string,
  dataDir: string,
  lifetimeSeconds?: number,
): Promise<Member> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let program: Program | undefined;
  const start = async (): Promise<void> => {
    program = startProgram('src/start.js', {
      ...serviceEnvironment(sandbox),
      PORT: String(port),
      UPSTREAM_URL: sandbox.url,
      REDIS_URL: redisUrl,
      WEBHOOK_SECRET: SECRET,
      DATA_DIR: dataDir,
      UPSTREAM_TIMEOUT_MS: '2000',
      OPERATION_TIMEOUT_MS: '4000',
    });
    endWithThisProcess(program.process, lifetimeSeconds);
    await program.says(/"url":"([^"]+)"/);
  };
  await start();
  for (const type of ['MONEY_IN', 'CEP', 'STATUS_UPDATE'] as const) {
    const address = {
      url: ingressUrl(url, sandbox.clientId, type, SECRET),
      token: 'token',
      webhook_type: type,
    };
    await control(sandbox, 'POST', `/v1/clients/${sandbox.clientId}/webhooks`, {
      client_id: sandbox.clientId,
      ...address,
    });
  }
  return {
    graphql: `${url}/graphql`,
    start,
    async kill() {
      await program?.end('SIGKILL');
    },
  };
}

async function makeIntents(sandbox: Sandbox, count: number): Promise<Intent[]> {
  const world = await control(sandbox, 'GET', '/sandbox');
  const { centralizingInstrumentId: sourceInstrumentId, clientId } = world;
  const internal = world.instruments.find(
    ({ role, status, ownerId }: Record<string, string>) =>
      role === 'internal' && status === 'ACTIVE' && ownerId !== clientId,
  );
  const make = async (kind: Kind, reference: string): Promise<Omit<Intent, 'told' | 'key' | 'kind'>> => {
    const payment = { sourceInstrumentId, externalReference: reference, description: `Pago ${reference}` };
    switch (kind) {
      case 'createMoneyOut':
        return {
          mark: reference,
          input: { ...payment, destinationInstrumentId: world.cardInstrumentIds[0], amount: '1.25' },
        };
      case 'createInternalTransaction':
        return {
          mark: reference,
          input: { ...payment, destinationInstrumentId: internal.id, amount: '1.50' },
        };
      case 'createPennyValidation':
        return {
          mark: reference,
          input: { ...payment, destinationInstrumentId: world.clabeInstrumentIds[0] },
        };
      case 'refundTransaction': {
        const credit = { clabe: world.accounts[0].clabe, amount: '2.00' };
        const { transaction } = await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
        return {
          mark: transaction.id,
          input: { transactionId: transaction.id, as: { reason: 'Devolucion' } },
        };
      }
    }
  };
  const intents: Intent[] = [];
  for (let index = 0; index < count; index += 1) {
    const kind = KINDS[index % KINDS.length] ?? 'createMoneyOut';
    intents.push({ kind, key: randomUUID(), told: '', ...(await make(kind, String(1_000_000 + index))) });
  }
  return intents;
}
