import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { callerToken } from '../../helpers/service.ts';
import { ask, inHours, type Night } from './night.ts';

/** An event that arrives later than this after its acknowledgement is late, in milliseconds. */
const LATE_MS = 5_000;
/** Phones that are opened at a time. */
const OPENING = 25;
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { id cursor transactionId } }';

/** Somebody who follows the credits of one customer, under a token of its own. */
export interface Phone {
  readonly customerId: string;
  close(): void;
}

interface MoneyIn {
  readonly id: string;
  readonly cursor: string;
  readonly transactionId: string;
}

/** Opens so many phones, half of them through each proxy, and resolves once each has had its connection. */
export async function openPhones(night: Night, count: number): Promise<readonly Phone[]> {
  const phones: Phone[] = [];
  while (phones.length < count) {
    const indexes = Array.from(
      { length: Math.min(OPENING, count - phones.length) },
      (_, at) => phones.length + at,
    );
    phones.push(...(await Promise.all(indexes.map((index) => openPhone(night, index)))));
  }
  return phones;
}

async function openPhone(night: Night, index: number): Promise<Phone> {
  const { stage } = night;
  const customerId = randomUUID();
  const origin = index % 2 === 0 ? stage.haproxy : stage.nginx;
  const token = await callerToken({ sub: `phone ${index}`, customer_id: customerId, exp: inHours(12) });
  const { data } = await ask(night, origin, token, '{ eventCursor }');
  const opened = Promise.withResolvers<void>();
  const client = connect(night, origin, token, opened.resolve);
  void follow(night, client, data.eventCursor);
  await opened.promise;
  return { customerId, close: () => void client.dispose() };
}

function connect({ stage, tally, ended }: Night, origin: string, token: string, onOpen: () => void): Client {
  const SecureSocket = class extends WebSocket {
    constructor(address: string, protocols: string) {
      super(address, protocols, { ca: stage.authority });
    }
  };
  let wasOpen = false;
  let isOpen = false;
  return createClient({
    url: `${origin.replace('https', 'wss')}/graphql`,
    webSocketImpl: SecureSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    // As the project's client does: spread, and longer each time.
    retryWait: (retries) => pause(Math.random() * Math.min(500 * 2 ** retries, 8_000)),
    on: {
      connected: () => {
        if (wasOpen) tally.seen.reconnections += 1;
        [wasOpen, isOpen] = [true, true];
        onOpen();
      },
      closed: () => {
        if (wasOpen && !isOpen && !ended.aborted) tally.seen.failedReconnections += 1;
        isOpen = false;
      },
    },
  });
}

/** Follows the credits until the night is over, from where it was each time. */
async function follow({ tally, ended }: Night, client: Client, cursor: string): Promise<void> {
  const variables = { after: cursor };
  const ids = new Set<string>();
  while (!ended.aborted) {
    try {
      for await (const { data, errors } of client.iterate<{ moneyIn?: MoneyIn }>({
        query: MONEY_IN,
        variables,
      })) {
        const event = data?.moneyIn;
        if (event === undefined) {
          const gap = errors?.find(({ extensions }) => extensions?.['code'] === 'EVENTS_GAP');
          if (gap === undefined) continue;
          tally.seen.gaps += 1;
          // From the beginning of what is there: what is known of it comes again.
          variables.after = String(gap.extensions?.['oldest']);
          ids.clear();
          continue;
        }
        variables.after = event.cursor;
        if (ids.has(event.id)) tally.seen.repeated += 1;
        ids.add(event.id);
        tally.arrived.add(event.transactionId);
        const since = tally.acknowledged.get(event.transactionId);
        tally.acknowledged.delete(event.transactionId);
        if (since !== undefined && Date.now() - since > LATE_MS) tally.seen.late += 1;
      }
    } catch {
      // The stream was refused or cut: it is opened again where it was.
    }
    await pause(200);
  }
}
