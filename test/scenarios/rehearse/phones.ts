import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endWithThisProcess } from '../../helpers/redis.ts';
import { type Night, noteWhy, type Tally } from './night.ts';
import type { Told } from './phone.ts';

const PHONE = fileURLToPath(new URL('phone.ts', import.meta.url));
/** An event that arrives later than this after its acknowledgement is late, in milliseconds. */
const LATE_MS = 5_000;

/** Many who follow the credits of one customer each, under tokens of their own. */
export interface Phones {
  readonly customerIds: readonly string[];
  stop(): void;
}

/** One process is late for its own sockets once thousands make their TLS at a time. */
const PROCESSES = 4;

/** Opens so many phones, half of them through each proxy, and resolves once each has had its connection. */
export async function openPhones(night: Night, count: number, lifetimeSeconds: number): Promise<Phones> {
  const share = Math.ceil(count / PROCESSES);
  const firsts = Array.from({ length: PROCESSES }, (_, at) => at * share).filter((first) => first < count);
  const groups = await Promise.all(
    firsts.map((first) => openGroup(night, first, Math.min(share, count - first), lifetimeSeconds)),
  );
  return {
    customerIds: groups.flatMap(({ customerIds }) => customerIds),
    stop() {
      for (const group of groups) group.stop();
    },
  };
}

async function openGroup(
  { stage, tally }: Night,
  first: number,
  count: number,
  lifetimeSeconds: number,
): Promise<Phones> {
  const { haproxy, nginx, authority, identity } = stage;
  const child = fork(PHONE, [String(first), String(count), haproxy, nginx, authority, identity.tokenUrl]);
  endWithThisProcess(child, lifetimeSeconds);
  const opened = Promise.withResolvers<readonly string[]>();
  // phone.ts sends nothing else.
  child.on('message', (message) => {
    const told = message as Told;
    if (told.what === 'open') opened.resolve(told.customerIds);
    else note(tally, told);
  });
  const gone = once(child, 'exit').then(() => {
    throw new Error('A process of the phones has ended.');
  });
  // Told by the race; later it is ended.
  gone.catch(() => {});
  return { customerIds: await Promise.race([opened.promise, gone]), stop: () => void child.kill() };
}

function note(tally: Tally, told: Exclude<Told, { what: 'open' }>): void {
  const { seen, arrived, acknowledged } = tally;
  if (told.what === 'arrived') {
    arrived.add(told.transactionId);
    const since = acknowledged.get(told.transactionId);
    acknowledged.delete(told.transactionId);
    if (since !== undefined && told.at - since > LATE_MS) seen.late += 1;
  } else if (told.what === 'repeated') seen.repeated += 1;
  else if (told.what === 'gap') seen.gaps += 1;
  else if (told.what === 'reconnected') seen.reconnections += 1;
  else if (told.what === 'late') seen.phonesLateMs = Math.max(seen.phonesLateMs, told.ms);
  else if (told.what === 'failed') {
    seen.failedReconnections += 1;
    noteWhy(seen, told.why);
  }
}
