import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NAMED_FAULTS } from '../../packages/sandbox/src/faults.ts';
import { control } from '../helpers/gateway.ts';
import { randomFrom } from '../helpers/random.ts';
import { endWithThisProcess } from '../helpers/redis.ts';
import {
  documentOf,
  inject,
  MUTATIONS,
  movementsOf,
  type Payable,
  payable,
} from '../scenarios/faults/payments.ts';
import { type Gateways, startGateways } from './gateways.ts';
import { type Network, startNetwork } from './network.ts';
import type { Ended, PayerOptions } from './payer.ts';

export interface PayingOptions {
  readonly payments: number;
  readonly seed: number;
  readonly work: string;
  readonly lifetimeSeconds: number;
}

export interface PayingReport {
  /** How the payments ended for the person, by the last word of the app. */
  readonly ended: Readonly<Record<string, number>>;
  readonly appKills: number;
  readonly gatewayKills: number;
  readonly cuts: number;
  readonly faults: number;
  /** Where the app and the ledger disagree, a sentence for each. */
  readonly lies: readonly string[];
}

/** Payments that one app makes at once. */
const AT_ONCE = 8;
const FAULTS = [...NAMED_FAULTS, { status: 503 }, { status: 502, commit: true }, { delayMs: 600 }] as const;

/** Pays on a bad network, with answers lost on both sides of the gateway and the app killed, and looks into the ledger. */
export async function payOnBadNetworks(options: PayingOptions): Promise<PayingReport> {
  await using gateways = await startGateways({
    redis: false,
    // A second refund of one credit is performed, so that the ledger shows it.
    choices: { repeatedRefund: 'performed' },
    environment: { UPSTREAM_TIMEOUT_MS: '800', OPERATION_TIMEOUT_MS: '2500' },
    lifetimeSeconds: options.lifetimeSeconds,
  });
  await using network = await startNetwork();
  const random = randomFrom(options.seed);
  const report = { ended: {} as Record<string, number>, appKills: 0, gatewayKills: 0, cuts: 0, faults: 0 };
  const lies: string[] = [];
  for (let done = 0; done < options.payments; done += AT_ONCE) {
    const work = join(options.work, String(done));
    await mkdir(work);
    const count = Math.min(AT_ONCE, options.payments - done);
    const payments: Payable[] = [];
    for (let index = 0; index < count; index += 1) {
      const mutation = MUTATIONS[(done + index) % MUTATIONS.length] ?? 'createMoneyOut';
      // Each in eight breaks a rule.
      payments.push(await payable(gateways.sandbox, mutation, `payment ${done + index}`, random() < 0.125));
    }
    await payAtOnce({
      gateways,
      network,
      random,
      report,
      work,
      payments,
      lifetimeSeconds: options.lifetimeSeconds,
    });
    const told = await endedIn(work);
    for (const payment of payments) {
      const last = told.findLast(({ tag }) => tag === payment.tag);
      const status = last?.status ?? 'nothing';
      report.ended[status] = (report.ended[status] ?? 0) + 1;
      lies.push(...(await liesOf(gateways, payment, told)));
    }
  }
  return { ...report, lies };
}

interface Batch {
  readonly gateways: Gateways;
  readonly network: Network;
  readonly random: () => number;
  readonly report: { appKills: number; gatewayKills: number; cuts: number; faults: number };
  readonly work: string;
  readonly payments: readonly Payable[];
  readonly lifetimeSeconds: number;
}

async function payAtOnce({ gateways, network, random, report, work, payments, lifetimeSeconds }: Batch) {
  const options: Omit<PayerOptions, 'isLast'> = {
    graphql: network.graphql,
    token: gateways.sandbox.accessToken,
    work,
    payments: payments.map(({ tag, mutation, input: { idempotencyKey: _, ...input } }) => ({
      tag,
      document: documentOf(mutation),
      input,
    })),
  };
  const { sandbox } = gateways;
  const connect = () => network.route(gateways.ports[0]);
  const start = (isLast: boolean) => {
    const program = fileURLToPath(new URL('payer.ts', import.meta.url));
    const text = JSON.stringify({ ...options, isLast } satisfies PayerOptions);
    const app = spawn(process.execPath, [program, text], { stdio: ['ignore', 'pipe', 'inherit'] });
    endWithThisProcess(app, lifetimeSeconds);
    return app;
  };

  for (const { path } of payments) {
    if (random() < 0.3) continue;
    const fault = FAULTS[Math.floor(random() * FAULTS.length)];
    await inject(sandbox, { method: 'POST', path }, fault, 1 + Math.floor(random() * 2));
    report.faults += 1;
  }
  connect();
  for (let starts = 1 + Math.floor(random() * 3); starts > 0; starts -= 1) {
    const app = start(false);
    // What it is doing when it is killed, chance says: from before it has sent anything to after the last outcome.
    const lives = random() * 600;
    app.stdout.once('data', () => setTimeout(() => app.kill('SIGKILL'), lives));
    const gone = once(app, 'exit');
    for (let cuts = Math.floor(random() * 4); cuts > 0; cuts -= 1) {
      await pause(random() * 300);
      network.cut();
      report.cuts += 1;
    }
    if (random() < 0.2) {
      await gateways.restart('SIGKILL');
      report.gatewayKills += 1;
      connect();
    }
    await gone;
    if (app.signalCode === 'SIGKILL') report.appKills += 1;
  }
  // The network is good at last.
  await control(sandbox, 'DELETE', '/sandbox/faults');
  const [code] = await once(start(true), 'exit');
  if (code !== 0) throw new Error(`the app ended with ${code}`);
}

async function endedIn(work: string): Promise<readonly Ended[]> {
  const text = await readFile(join(work, 'ended.jsonl'), 'utf8');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Ended);
}

/** Compares all that the person was told of a payment with what the ledger shows in the end. */
async function liesOf(
  { sandbox }: Gateways,
  { tag }: Payable,
  told: readonly Ended[],
): Promise<readonly string[]> {
  const lies: string[] = [];
  const movements = await movementsOf(sandbox, tag);
  if (movements.length > 1) lies.push(`${tag} moved ${movements.length} times`);
  const words = told.filter((ended) => ended.tag === tag);
  if (words.length === 0) lies.push(`${tag} ended without a word`);
  for (const { status, transactionId } of words) {
    if (status === 'done' && movements.length === 0) lies.push(`${tag} was told done, and did not move`);
    if (status === 'refused' && movements.length > 0) lies.push(`${tag} was told refused, and moved`);
    const known = transactionId === undefined || movements.some((one) => one.transactionId === transactionId);
    if (status === 'done' && !known) lies.push(`${tag} was told the name of another transaction`);
  }
  return lies;
}
