import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { ingressUrl } from '../../../src/ingress/addresses.ts';
import { creditTo } from '../../helpers/fleet.ts';
import { documentOf, payable } from '../faults/payments.ts';
import { ask, type Night } from './night.ts';
import type { Phone } from './phones.ts';

const CREDITS_A_SECOND = 8;
const EVERYDAY = '{ client { id accounts(first: 5) { nodes { id availableBalance { amount } } } } }';

/** Delivers credits to phones by chance, each until it is acknowledged. */
export async function provide(night: Night, phones: readonly Phone[]): Promise<void> {
  while (!night.ended.aborted) {
    const phone = phones[Math.floor(Math.random() * phones.length)];
    if (phone !== undefined && !night.tally.isHeld) void credit(night, phone.customerId);
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
  const [secret = ''] = (stage.environment['WEBHOOK_SECRET'] ?? '').split(',');
  try {
    const answer = await request(ingressUrl(stage.nginx, stage.sandbox.clientId, 'MONEY_IN', secret), {
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
export async function pay(night: Night, token: string, paid: string[]): Promise<void> {
  const { tally, ended } = night;
  for (let number = 1; !ended.aborted; ) {
    if (!tally.isHeld) {
      tally.open += 1;
      await payOnce(night, token, `rehearsed ${number}`, paid);
      tally.open -= 1;
      number += 1;
    }
    await pause(200);
  }
}

async function payOnce(night: Night, token: string, tag: string, paid: string[]): Promise<void> {
  const { stage, tally, ended } = night;
  const { input } = await payable(stage.sandbox, 'createMoneyOut', tag);
  while (!ended.aborted) {
    const answer = await ask(night, stage.haproxy, token, documentOf('createMoneyOut'), { input }).catch(
      () => undefined,
    );
    const type = answer?.data?.result?.__typename;
    if (type === 'CreateMoneyOutSuccess') {
      tally.seen.paymentsDone += 1;
      paid.push(tag);
      return;
    }
    if (type === 'OutcomeUnknown') tally.seen.paymentsUnknown += 1;
    else tally.seen.paymentsPutOff += 1;
    await pause(500);
  }
}

/** Asks what an app asks every day, through one proxy and the other by turns. */
export async function read(night: Night, token: string): Promise<void> {
  const { stage, tally, ended } = night;
  for (let turn = 0; !ended.aborted; turn += 1) {
    const origin = turn % 2 === 0 ? stage.haproxy : stage.nginx;
    const start = performance.now();
    const answer = await ask(night, origin, token, EVERYDAY).catch(() => undefined);
    if (answer?.errors === undefined && answer?.data != null)
      tally.seen.queryMs.push(performance.now() - start);
    else tally.seen.queriesFailed += 1;
    await pause(100);
  }
}
