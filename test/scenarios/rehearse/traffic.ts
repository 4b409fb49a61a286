import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { ingressUrl } from '../../../src/ingress/addresses.ts';
import { creditTo } from '../../helpers/fleet.ts';
import { callerToken } from '../../helpers/service.ts';
import { documentOf, payable } from '../faults/payments.ts';
import type { Stage } from './stage.ts';

/** An event that arrives later than this after its acknowledgement is late, in milliseconds. */
const LATE_MS = 5_000;
const OPENING = 25;
const CREDITS_A_SECOND = 8;
const EVERYDAY = '{ client { id accounts(first: 5) { nodes { id availableBalance { amount } } } } }';

/** What users have seen since the numbers were taken last. */
export interface Seen {
  credits: number;
  repeated: number;
  late: number;
  gaps: number;
  reconnections: number;
  failedReconnections: number;
  paymentsDone: number;
  /** Attempts that were told to come again. */
  paymentsPutOff: number;
  paymentsUnknown: number;
  queriesFailed: number;
  readonly queryMs: number[];
}

const nothing = (): Seen => ({
  credits: 0,
  repeated: 0,
  late: 0,
  gaps: 0,
  reconnections: 0,
  failedReconnections: 0,
  paymentsDone: 0,
  paymentsPutOff: 0,
  paymentsUnknown: 0,
  queriesFailed: 0,
  queryMs: [],
});

/** Everything that goes on throughout the night. */
export interface Traffic {
  /** What was seen since it was asked last. */
  take(): Seen;
  /** Credits that were acknowledged and have not reached their phone. */
  waiting(): number;
  /** Resolves once nothing is waiting and no payment is open, or the time is over. */
  settle(ms: number): Promise<void>;
  /** Tags of the payments that callers were told of as done. */
  readonly paid: readonly string[];
  stop(): Promise<void>;
}

export async function startTraffic(stage: Stage, count: number): Promise<Traffic> {
  const agent = new Agent({ connect: { ca: stage.authority }, connections: 32 });
  let seen = nothing();
  const acknowledged = new Map<string, number>();
  const arrived = new Set<string>();
  const running = new AbortController();
  let open = 0;

  const ask = async (origin: string, token: string, query: string, variables = {}) => {
    const { statusCode, body } = await request(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ query, variables }),
      dispatcher: agent,
    });
    const text = await body.text();
    if (statusCode >= 500) throw new Error(`status ${statusCode}`);
    return JSON.parse(text);
  };

  const SecureSocket = class extends WebSocket {
    constructor(address: string, protocols: string) {
      super(address, protocols, { ca: stage.authority });
    }
  };
  const phones = Array.from({ length: count }, (_, index) => ({
    customerId: randomUUID(),
    origin: index % 2 === 0 ? stage.haproxy : stage.nginx,
    close: () => {},
  }));
  const openPhone = async (phone: (typeof phones)[number], index: number): Promise<void> => {
    const token = await callerToken({
      sub: `phone ${index}`,
      customer_id: phone.customerId,
      exp: inHours(12),
    });
    const { data } = await ask(phone.origin, token, '{ eventCursor }');
    const variables = { after: data.eventCursor };
    const ids = new Set<string>();
    let wasOpen = false;
    let isOpen = false;
    const client = createClient({
      url: `${phone.origin.replace('https', 'wss')}/graphql`,
      webSocketImpl: SecureSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      // As the project's client does: spread, and longer each time.
      retryWait: (retries) => pause(Math.random() * Math.min(500 * 2 ** retries, 8_000)),
      on: {
        connected: () => {
          if (wasOpen) seen.reconnections += 1;
          [wasOpen, isOpen] = [true, true];
        },
        closed: () => {
          if (wasOpen && !isOpen && !running.signal.aborted) seen.failedReconnections += 1;
          isOpen = false;
        },
      },
    });
    phone.close = () => void client.dispose();
    const query = 'subscription ($after: Cursor) { moneyIn(after: $after) { id cursor transactionId } }';
    const follow = async (): Promise<void> => {
      while (!running.signal.aborted) {
        try {
          for await (const result of client.iterate({ query, variables })) {
            const event = (
              result.data as { moneyIn?: { id: string; cursor: string; transactionId: string } } | null
            )?.moneyIn;
            if (event === undefined) {
              if (JSON.stringify(result.errors).includes('EVENTS_GAP')) seen.gaps += 1;
              continue;
            }
            variables.after = event.cursor;
            if (ids.has(event.id)) seen.repeated += 1;
            ids.add(event.id);
            arrived.add(event.transactionId);
            const since = acknowledged.get(event.transactionId);
            acknowledged.delete(event.transactionId);
            if (since !== undefined && Date.now() - since > LATE_MS) seen.late += 1;
          }
        } catch {
          // The stream was refused or cut: it is opened again where it was.
        }
        await pause(200);
      }
    };
    void follow();
  };
  for (let start = 0; start < count; start += OPENING) {
    await Promise.all(phones.slice(start, start + OPENING).map((phone, at) => openPhone(phone, start + at)));
  }

  const provider = async (): Promise<void> => {
    while (!running.signal.aborted) {
      const phone = phones[Math.floor(Math.random() * count)];
      if (phone !== undefined) void credit(phone.customerId);
      await pause(1_000 / CREDITS_A_SECOND);
    }
  };
  const credit = async (customerId: string): Promise<void> => {
    const transactionId = randomUUID();
    const { body } = creditTo(customerId, randomUUID());
    const whole = body as { body: Record<string, unknown> };
    const text = JSON.stringify({ ...body, body: { ...whole.body, id: transactionId } });
    open += 1;
    while (!running.signal.aborted) {
      const [secret = ''] = (stage.environment['WEBHOOK_SECRET'] ?? '').split(',');
      const status = await request(ingressUrl(stage.nginx, stage.sandbox.clientId, 'MONEY_IN', secret), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
        dispatcher: agent,
      }).then(
        async (answer) => {
          await answer.body.dump();
          return answer.statusCode;
        },
        () => 0,
      );
      if (status === 201) break;
      await pause(250);
    }
    open -= 1;
    seen.credits += 1;
    if (!arrived.has(transactionId)) acknowledged.set(transactionId, Date.now());
  };

  const clientToken = await callerToken({ sub: 'the back office', exp: inHours(12) });
  const paid: string[] = [];
  const payer = async (): Promise<void> => {
    for (let number = 1; !running.signal.aborted; number += 1) {
      const tag = `rehearsed ${number}`;
      const { input } = await payable(stage.sandbox, 'createMoneyOut', tag);
      open += 1;
      while (!running.signal.aborted) {
        const answer = await ask(stage.haproxy, clientToken, documentOf('createMoneyOut'), { input }).catch(
          () => undefined,
        );
        const type = answer?.data?.result?.__typename;
        if (type === 'CreateMoneyOutSuccess') {
          seen.paymentsDone += 1;
          paid.push(tag);
          break;
        }
        if (type === 'OutcomeUnknown') seen.paymentsUnknown += 1;
        else seen.paymentsPutOff += 1;
        await pause(500);
      }
      open -= 1;
      await pause(200);
    }
  };
  const reader = async (): Promise<void> => {
    for (let turn = 0; !running.signal.aborted; turn += 1) {
      const origin = turn % 2 === 0 ? stage.haproxy : stage.nginx;
      const start = performance.now();
      const answer = await ask(origin, clientToken, EVERYDAY).catch(() => undefined);
      if (answer?.errors === undefined && answer?.data != null) seen.queryMs.push(performance.now() - start);
      else seen.queriesFailed += 1;
      await pause(100);
    }
  };
  const working = [provider(), payer(), reader()];
  return {
    take() {
      const taken = seen;
      seen = nothing();
      return taken;
    },
    waiting: () => acknowledged.size,
    async settle(ms) {
      const end = Date.now() + ms;
      while (Date.now() < end && (acknowledged.size > 2 || open > 3)) await pause(100);
    },
    paid,
    async stop() {
      running.abort();
      for (const phone of phones) phone.close();
      await Promise.all(working);
      await agent.destroy();
    },
  };
}

const inHours = (hours: number): number => Math.floor(Date.now() / 1_000) + hours * 3_600;
