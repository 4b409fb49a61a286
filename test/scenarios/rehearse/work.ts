import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { ingressUrl } from '../../../src/ingress/addresses.ts';
import { creditTo } from '../../helpers/fleet.ts';
import { endWithThisProcess } from '../../helpers/redis.ts';
import { documentOf, payable } from '../faults/payments.ts';
import { ask, whyOf } from './ask.ts';
import { type Night, noteWhy } from './night.ts';
import type { Reading } from './read.ts';

const CREDITS_A_SECOND = 8;
const BACK_OFFICE = 'the back office';
const READ = fileURLToPath(new URL('read.ts', import.meta.url));
/** What the description of each payment begins with. */
export const TAG = 'rehearsed';

/** Delivers credits to customers by chance, each until it is acknowledged. */
export async function provide(night: Night, customerIds: readonly string[]): Promise<void> {
  while (!night.ended.aborted) {
    const customerId = customerIds[Math.floor(Math.random() * customerIds.length)];
    if (customerId !== undefined && !night.tally.isHeld) void credit(night, customerId);
    await pause(1_000 / CREDITS_A_SECOND);
  }
}

async function credit(night: Night, customerId: string): Promise<void> {
  const { tally, ended } = night;
  const transactionId = randomUUID();
  const { body } = creditTo(customerId, randomUUID());
  const whole = body as { body: Record<string, unknown> };
  const text = JSON.stringify({ ...body, body: { ...whole.body, id: transactionId } });
  tally.open += 1;
  while ((await deliver(night, text)) !== 201) {
    if (ended.aborted) return;
    await pause(250);
  }
  tally.open -= 1;
  tally.seen.credits += 1;
  if (!tally.arrived.has(transactionId)) tally.acknowledged.set(transactionId, Date.now());
}

/** Status of the answer to a webhook; 0 where there is none. */
async function deliver({ stage, agent }: Night, text: string): Promise<number> {
  const url = ingressUrl(stage.nginx, stage.sandbox.clientId, 'MONEY_IN', stage.providerSecret);
  try {
    const answer = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
      dispatcher: agent,
    });
    await answer.body.dump();
    return answer.statusCode;
  } catch {
    return 0;
  }
}

/** Pays again and again, each payment until it is told as done. Their tags go to `paid`. */
export async function pay(night: Night, paid: string[]): Promise<void> {
  const { tally, ended } = night;
  for (let number = 1; !ended.aborted; ) {
    if (!tally.isHeld) {
      tally.open += 1;
      await payOnce(night, `${TAG} ${number}`, paid);
      tally.open -= 1;
      number += 1;
    }
    await pause(200);
  }
}

async function payOnce({ stage, agent, tally, ended }: Night, tag: string, paid: string[]): Promise<void> {
  const { input } = await payable(stage.sandbox, 'createMoneyOut', tag);
  while (!ended.aborted) {
    const bearer = await stage.identity.bearer(BACK_OFFICE);
    const document = documentOf('createMoneyOut');
    const answer = await ask(agent, stage.haproxy, bearer, document, { input }).catch((error: unknown) => {
      noteWhy(tally.seen, `payment, HAProxy: ${whyOf(error)}`);
      return undefined;
    });
    if (answer?.data) tally.seen.traces.push(answer.traceId);
    const type = answer?.data?.result?.__typename;
    if (type === 'CreateMoneyOutSuccess') {
      tally.seen.paymentsDone += 1;
      paid.push(tag);
      return;
    }
    if (answer === undefined) tally.seen.paymentsUnanswered += 1;
    else if (type === 'OutcomeUnknown') tally.seen.paymentsUnknown += 1;
    else tally.seen.paymentsRefused += 1;
    await pause(500);
  }
}

/** Has everyday queries asked until the night is over. */
export async function read({ stage, tally, ended }: Night, lifetimeSeconds: number): Promise<void> {
  const child = fork(READ, [stage.haproxy, stage.nginx, stage.authority]);
  endWithThisProcess(child, lifetimeSeconds);
  // read.ts sends nothing else.
  child.on('message', (message) => {
    const { milliseconds, why, traceId } = message as Reading;
    if (milliseconds !== undefined) tally.seen.queryMs.push(milliseconds);
    else tally.seen.queriesFailed += 1;
    if (why !== undefined) noteWhy(tally.seen, why);
    if (traceId !== undefined) tally.seen.traces.push(traceId);
  });
  while (!ended.aborted) {
    child.send(await stage.identity.bearer(BACK_OFFICE));
    await pause(1_000);
  }
  child.kill();
}
