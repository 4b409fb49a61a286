import { verifyJournal } from '../../src/money/journal/verify.ts';
import { isBehind } from '../../src/money/mark.ts';
import type { Caller } from './callers.ts';
import { Broken, type Process } from './core.ts';
import type { GatewayPlace } from './gateways.ts';
import type { History } from './history.ts';
import { type Order, wrongWith } from './orders.ts';
import type { Told } from './raw.ts';
import { countedIn, isHeldBy, isLedger, isRecord, ownerless, settledIn } from './records.ts';
import type { RedisServer } from './redis/server.ts';
import type { World } from './world.ts';

/** Watches over all that is told of payments, and over processes that end. */
export function watchOverPayments(world: World): void {
  const { sim } = world;
  const movedBy = ({ tag }: Order): number => world.movements.of(tag);
  const onTold = (name: string, order: Order): void => {
    const last = order.told.at(-1);
    sim.say(`${name} is told of ${order.tag}: ${last?.status}${last?.safeToRetry ? ', safe to retry' : ''}`);
    checkOrder(world, order);
  };
  for (const payer of [...world.rawPayers, ...world.sharers])
    Object.assign(payer, { movedBy, onTold: (order: Order) => onTold(payer.name, order) });
  for (const payer of world.rawPayers) payer.forgottenAt = () => world.redis.forgottenAt;
  for (const payer of [...world.payers, ...world.payerTabs])
    Object.assign(payer, { movedBy, onTold: (_: unknown, order: Order) => onTold(payer.name, order) });
  for (const place of world.gateways) place.onEnded = (process) => checkEnded(world, place, process);
  for (const server of world.redis.servers) server.onScript = (keys) => watchRecords(world, server, keys);
}

/**
 * What a record has as settled no script changes any more: somebody may have been told. No script leaves a record that is nobody's, or
 * holds payments again once an operator has let them go on.
 */
function watchRecords(
  { sim, operator }: World,
  { keyspace }: RedisServer,
  keys: readonly string[],
): () => void {
  const records = keys.filter(isRecord);
  const ledgers = operator.mayBeHeld ? [] : keys.filter((key) => isLedger(key) && !isHeldBy(keyspace, key));
  if (records.length === 0 && ledgers.length === 0) return () => {};
  const before = records.map((key) => settledIn(keyspace, key));
  return () => {
    for (const [index, key] of records.entries()) {
      const now = settledIn(keyspace, key);
      if (before[index] !== undefined && now !== before[index])
        sim.fail(new Broken(`${key} is recorded as ${before[index]}, and then as ${now ?? 'open'}`));
    }
    for (const key of ownerless(keyspace, records))
      sim.fail(new Broken(`${key} is recorded as nobody’s: another name would be given its key`));
    for (const key of ledgers)
      if (isHeldBy(keyspace, key))
        sim.fail(new Broken(`${key} holds payments, though its record was not put back since they go on`));
  };
}

/** One key moves money at most once; what was told is what the ledger says, and final answers agree. */
function checkOrder(world: World, order: Order): void {
  const wrong = wrongWith(order, world.movements.of(order.tag));
  if (wrong !== undefined) world.sim.fail(new Broken(wrong));
}

/** A process that was told to end has waited for each payment that it had sent, and has stored what it was told of it. */
function checkEnded(world: World, { name, hasGivenUp }: GatewayPlace, process: Process): void {
  const { sim, service } = world;
  const [open] = service.underWay.get(process)?.values() ?? [];
  if (open !== undefined) sim.fail(new Broken(`${name} has ended while a payment was under way: ${open}`));
  // It says so where it could not store something.
  if (hasGivenUp) return;
  const stored = service.told.get(process) ?? new Set();
  // Of two that are alike one may still be open.
  const isAlone = (body: string): boolean =>
    world.orders.find(({ tag }) => body.includes(`"${tag}"`))?.alike.length === 1;
  const left = [...world.recordedAsSent()].find((body) => stored.has(body) && isAlone(body));
  if (left !== undefined)
    sim.fail(new Broken(`${name} has ended, and has not stored that this is done: ${left}`));
}

/** What is recorded under a key, as its owner is told. */
interface Recorded {
  readonly id: string;
  readonly state: 'IN_FLIGHT' | 'DONE' | 'REFUSED' | 'UNKNOWN';
  readonly safeToRetry: boolean;
  readonly message: string | null;
  readonly transactionId: string | null;
}

const RECORDED =
  'query ($key: String!) { payment(idempotencyKey: $key) { id state safeToRetry message transactionId } }';
/** How many are asked for at a time. */
const AT_ONCE = 20;
/** How long it takes at most until a payment is sent again whose answer was another's, in milliseconds. */
const SLOWEST_MS = 11 * 60_000;

/** Whether the gateway sends a payment again only minutes later, as it was given the answer to another. */
const isAskedSlowly = (told: Told | undefined): boolean => {
  // The field is of this type.
  const recorded = (told?.data?.['payment'] ?? null) as Recorded | null;
  return recorded?.safeToRetry === true && recorded.message?.includes(' had such an answer.') === true;
};

/** What has become of each payment in the end, as its owner is told, also where nobody has asked again. */
export async function problemsOfPayments(
  world: World,
  historyOf: (clientId: string) => History,
): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const order of world.orders) checkOrder(world, order);
  const owned: (readonly [Order, Caller])[] = [
    ...world.rawPayers.flatMap(({ orders, caller }) => orders.map((order) => [order, caller] as const)),
    ...world.sharers.flatMap(({ owners }) => [...owners]),
  ];
  const owners = new Map<string, Order>();
  for (let first = 0; first < owned.length; first += AT_ONCE) {
    const some = owned.slice(first, first + AT_ONCE).filter(([order]) => !order.isForgotten);
    let answers = await askAtEnd(world, RECORDED, some);
    if (answers.some(isAskedSlowly)) {
      await world.sim.runUntil(world.sim.elapsed + SLOWEST_MS);
      answers = await askAtEnd(world, RECORDED, some);
    }
    for (const [index, [order, caller]] of some.entries()) {
      const told = answers[index];
      if (told?.data == null || told.errors !== undefined) {
        problems.push(`nobody says what became of ${order.tag}: ${JSON.stringify(told)}`);
        continue;
      }
      // The field is of this type.
      const recorded = (told.data['payment'] ?? null) as Recorded | null;
      problems.push(...problemsOf(world, order, recorded, historyOf(caller.client.clientId)));
      const id = recorded?.state === 'DONE' ? recorded.transactionId : null;
      if (id === null) continue;
      const other = owners.get(id);
      if (other !== undefined && other !== order)
        problems.push(`${id} is told to be ${order.tag}, and ${other.tag}`);
      owners.set(id, order);
    }
  }
  return [...problems, ...problemsOfCounts(world), ...(await problemsOfJournals(world))];
}

/** How long after the last fault each write is on every replica, in ms. */
const MENDED_MS = 30_000;

/** Some gateway knows how many payments are recorded as sent, so that it notices when the record is put back. */
function problemsOfCounts({ isEmbedded, operator, calmSince, redis, demo, gateways }: World): string[] {
  // What no replica had is counted, and known to nobody, until a later payment is on them all.
  if (isEmbedded || calmSince === undefined || operator.lastNewAt < calmSince + MENDED_MS) return [];
  const { clientId, name } = demo;
  const counted = countedIn(redis.primary.keyspace, clientId);
  return gateways.some((place) => !isBehind(place.knownOf(clientId), counted))
    ? []
    : [`no gateway knows that ${counted.sent} payments of ${name} were sent`];
}

/** The journal is whole: each line follows from the one before. */
async function problemsOfJournals({ operator, clients, sim }: World): Promise<readonly string[]> {
  let found: readonly string[] | undefined;
  operator
    .as(({ journal }) =>
      Promise.all(
        clients.map(async ({ clientId, name }) => {
          const { problem } = await verifyJournal(journal, clientId, undefined, () => {});
          return problem === undefined
            ? []
            : [`the journal of ${name} is not whole: ${JSON.stringify(problem)}`];
        }),
      ),
    )
    .then(
      (problems) => {
        found = problems.flat();
      },
      (error: unknown) => sim.fail(error),
    );
  await sim.runUntil(sim.elapsed + 10_000, () => found !== undefined);
  return found ?? ['the journal of payments was not read'];
}

function problemsOf(world: World, order: Order, recorded: Recorded | null, history: History): string[] {
  const { tag, told, alike } = order;
  const moved = world.movements.of(tag);
  const { state = null } = recorded ?? {};
  const said = new Set(told.map(({ status }) => status));
  const problems: string[] = [];
  // A process that ended while its record was away could not store what it had told; or what it had stored was put back.
  const isLost = state === 'UNKNOWN' && (order.isOfBefore || world.gateways.some(({ starts }) => starts > 1));
  if (said.has('done') && state !== 'DONE' && !isLost)
    problems.push(`${tag} was told to be done, and is ${state} in the end`);
  if (said.has('refused') && state === 'DONE')
    problems.push(`${tag} was told to be refused, and is done in the end`);
  if (state === 'DONE' && moved === 0)
    problems.push(`${tag} is done in the end, and the ledger has nothing of it`);
  if (state === 'REFUSED' && moved >= alike.length)
    problems.push(`${tag} is refused in the end, and has moved money`);
  if (alike.length > 1) return problems;
  if (state === null && moved > 0)
    problems.push(`${tag} has moved money, and nothing is recorded under its key`);
  if (moved > 0 && said.size === 1 && said.has('nothing'))
    problems.push(`${tag} was told each time to have moved nothing, and has`);
  if (state === 'UNKNOWN' && isToBeFound(world, order, recorded, history))
    problems.push(
      `${tag}, a ${order.mutation}, is unknown in the end, and could be known: ${recorded?.message}`,
    );
  return problems;
}

/** Whether the gateways can find out by themselves by now what became of a payment. */
function isToBeFound(world: World, order: Order, recorded: Recorded | null, history: History): boolean {
  const { gateways, callers, service, movements } = world;
  // In passthrough a process settles what it has sent, as long as it lives.
  if (callers.mode === 'passthrough' && gateways.some(({ starts }) => starts > 1)) return false;
  if (order.isOfBefore) return false;
  if (order.mutation === 'createMoneyOut') return recorded?.safeToRetry === true;
  if (order.mutation !== 'createInternalTransaction' || movements.of(order.tag) === 0) return false;
  if (!world.isLogWhole(history.again)) return false;
  const { transactions } = service.made.world.state;
  const ids = [...transactions.values()]
    .filter(({ description }) => description === order.tag)
    .map(({ id }) => id);
  return history.log.some(({ type, text }) => type === 'MONEY_IN' && ids.some((id) => text.includes(id)));
}

/** Asks a gateway for some, as nothing goes wrong any more. @returns undefined where no answer came */
async function askAtEnd(
  { service, network, sim, gateways }: World,
  query: string,
  some: readonly (readonly [Order, Caller])[],
): Promise<readonly (Told | undefined)[]> {
  const answers: (Told | undefined)[] = some.map(() => undefined);
  let open = some.length;
  for (const [index, [order, caller]] of some.entries()) {
    const variables = { key: order.input['idempotencyKey'] };
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${caller.token()}` },
      body: JSON.stringify({ query, variables }),
    };
    service.process.run(() =>
      network
        .fetch(`${gateways[index % gateways.length]?.url}/graphql`, request)
        .then(async (answer) => {
          answers[index] = JSON.parse(await answer.text());
        })
        .catch(() => undefined)
        .finally(() => {
          open -= 1;
        }),
    );
  }
  await sim.runUntil(sim.elapsed + 5_000, () => open === 0);
  return answers;
}
