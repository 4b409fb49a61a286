import type { Kept, Order, Reader } from './apps.ts';
import { Broken } from './core.ts';
import type { World } from './world.ts';

/** Watches over the rules, at each step that could break one; what is broken ends the run. */
export function watchOver(world: World): void {
  const { sim } = world;
  for (const reader of world.readers) {
    const segment = new Set<string>();
    reader.onKept = (_, item) => {
      if ('gap' in item) {
        segment.clear();
        sim.say(`${reader.name} is told of a gap: ${item.gap}`);
        return;
      }
      if (segment.has(item.id))
        sim.fail(new Broken(`${reader.name} has been given event ${item.id} twice without a gap between`));
      segment.add(item.id);
      sim.say(`${reader.name} has ${item.id.slice(0, 8)}`);
    };
  }
  for (const payer of world.payers) {
    payer.onTold = (_, order) => {
      const last = order.told.at(-1);
      sim.say(
        `${payer.name} is told of ${order.tag}: ${last?.status}${last?.safeToRetry ? ', safe to retry' : ''}`,
      );
      checkOrder(world, order);
    };
  }
}

/** How often money has moved for an order. */
function movedBy({ service }: World, { tag }: Order): number {
  const { ledger, state } = service.made.world;
  return ledger.movements.filter(
    ({ transactionId }) => state.transactions.get(transactionId)?.description === tag,
  ).length;
}

/** One key moves money at most once; what was told is what the ledger says, and final answers agree. */
function checkOrder(world: World, order: Order): void {
  const { sim } = world;
  const moved = movedBy(world, order);
  if (moved > 1) sim.fail(new Broken(`${order.tag} has moved money ${moved} times`));
  const finals = new Set(order.told.filter(({ status }) => status !== 'unknown').map(({ status }) => status));
  if (finals.size > 1) sim.fail(new Broken(`${order.tag} was told to be done, and to be refused`));
  if (finals.has('done') && moved === 0)
    sim.fail(new Broken(`${order.tag} was told to be done, and the ledger has nothing of it`));
  if (finals.has('refused') && moved > 0)
    sim.fail(new Broken(`${order.tag} was told to be refused, and has moved money`));
}

interface Logged {
  readonly position: string;
  readonly id: string;
  readonly type: string;
}

/** The log as it stands in the store. */
function logOf(world: World): readonly Logged[] {
  const rows = world.redis.primary.keyspace.run('XRANGE', [`{${world.demo.clientId}}:log`, '-', '+']);
  // XRANGE lists ids, each with its fields.
  return (rows as readonly [string, readonly string[]][]).map(([position, fields]) => {
    const event = JSON.parse(fields[fields.indexOf('event') + 1] ?? '{}') as Logged;
    return { position, id: event.id, type: event.type };
  });
}

/** Everything that has to hold once nothing has gone wrong for a minute. */
export async function checkEnd(world: World): Promise<readonly string[]> {
  const problems: string[] = [];
  const log = logOf(world);
  const places = new Map<string, number>();
  for (const [place, { id }] of log.entries()) {
    if (places.has(id)) problems.push(`event ${id} is in the log twice`);
    places.set(id, place);
  }
  for (const { idMsg, type, at } of world.service.acknowledged) {
    if (!places.has(idMsg))
      problems.push(`${type} ${idMsg} was answered 201 after ${at / 1000} s, and is not in the log`);
  }
  for (const reader of world.readers) problems.push(...problemsOf(reader, log));
  for (const payer of world.payers) {
    for (const order of payer.orders) {
      checkOrder(world, order);
      if (!order.isOver)
        problems.push(
          `${order.tag} is not over: ${order.told.map(({ status }) => status).join(', ') || 'nothing was told'}`,
        );
    }
  }
  problems.push(...(await problemsOfGateways(world)));
  const { balanced } = world.service.made.world.ledger.check();
  if (!balanced) problems.push('the ledger is not balanced');
  return problems;
}

/** Where a cursor stands: `1|epoch|client|position`. */
const positionOf = (cursor: string): string =>
  Buffer.from(cursor, 'base64url').toString().split('|')[3] ?? '';

/** What a reader has kept, against the log: in order, nothing left out, up to the head. */
function problemsOf(reader: Reader, log: readonly Logged[]): readonly string[] {
  const places = new Map(log.map(({ position, id }, place) => [`${position} ${id}`, place]));
  const isMine = ({ type }: Logged): boolean => reader.kind === 'events' || type === 'MONEY_IN';
  const nextOf = (place: number): number => log.findIndex((entry, at) => at > place && isMine(entry));
  const problems: string[] = [];
  /** Where it stands in the log; undefined where it may stand anywhere, null where it was given what the log lost. */
  let stands: number | null | undefined;
  for (const item of reader.kept as readonly Kept[]) {
    if ('gap' in item) {
      stands = undefined;
      continue;
    }
    // What a failover has lost stood elsewhere, also where the message was delivered again.
    const place = places.get(`${positionOf(item.cursor)} ${item.id}`);
    if (stands === null && place !== undefined)
      problems.push(
        `${reader.name} was given ${item.id} after an event that the log lost, and told of no gap`,
      );
    else if (place !== undefined && stands !== undefined && stands !== null && place !== nextOf(stands))
      problems.push(
        `${reader.name} was given event ${place} of the log (${item.id}) after ${stands}, not ${nextOf(stands)}`,
      );
    stands = place ?? null;
    if (problems.length > 0) return problems;
  }
  const left = stands === undefined || stands === null ? -1 : nextOf(stands);
  if (stands === null) problems.push(`${reader.name} stands at an event that the log lost`);
  else if (left !== -1)
    problems.push(
      `${reader.name} stands at event ${stands} of the log, and was not given ${left} of ${log.length}`,
    );
  return problems;
}

async function problemsOfGateways(world: World): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { url, name } of world.gateways) {
    let text: string | undefined;
    // A gateway that nobody asks anything cannot know that the service is back.
    const query = {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${world.demo.accessToken}` },
      body: JSON.stringify({ query: '{ banks { id } }' }),
    };
    world.service.process.run(() =>
      world.network
        .fetch(`${url}/graphql`, query)
        .then((answer) => answer.text())
        .then(() => world.network.fetch(`${url}/readyz`))
        .then(
          async (response) => {
            text = `${response.status} ${await response.text()}`;
          },
          (error: unknown) => {
            text = String(error);
          },
        ),
    );
    await world.sim.runUntil(world.sim.elapsed + 5_000, () => text !== undefined);
    if (!text?.startsWith('200 ') || !text.includes('"spooled":0') || !text.includes('"degraded":[]'))
      problems.push(`${name} says ${text}`);
  }
  return problems;
}
