import type { Gap, GapReason } from '../../src/events/errors.ts';
import type { Kept, Reader } from './apps.ts';
import { Broken } from './core.ts';
import { History, hasLost, lifeOf, type Seeing } from './history.ts';
import { problemsOfFeeds, problemsOfLeaks } from './leaks.ts';
import { problemsOfPayments, watchOverPayments } from './payment-oracles.ts';
import type { RawReader, Stream } from './streams.ts';
import { Browser } from './tabs.ts';
import type { World } from './world.ts';

/** Watches over the rules, at each step that could break one; what is broken ends the run. */
export function watchOver(world: World): void {
  const { sim } = world;
  for (const reader of world.readers) {
    const segment = new Set<string>();
    reader.onKept = (_, item) => {
      if ('mark' in item) return;
      if ('gap' in item) {
        segment.clear();
        sim.say(`${reader.name} is told of a gap: ${item.gap}`);
        return;
      }
      checkClient(world, reader, item.id);
      if (segment.has(item.id))
        sim.fail(new Broken(`${reader.name} has been given event ${item.id} twice without a gap between`));
      segment.add(item.id);
      sim.say(`${reader.name} has ${item.id.slice(0, 8)}`);
    };
  }
  for (const reader of world.rawReaders) reader.onEvent = (id) => checkClient(world, reader, id);
  for (const place of world.gateways) place.onGap = (gap) => checkGap(world, place.name, gap);
  watchOverPayments(world);
}

/** Nobody is given an event of another client. The log of its reader does not have it, as though it had been lost. */
function checkClient({ sim, service }: World, { name, caller }: Reader | RawReader, id: string): void {
  const clientId = service.clientOf.get(id);
  if (clientId !== undefined && clientId !== caller.client.clientId)
    sim.fail(new Broken(`${name} (${caller.name}) is given ${id}, an event of another client`));
}

/** What a gateway tells its operator of a gap is what has happened: where to look hangs on it. */
function checkGap(world: World, name: string, { clientId, reason }: Gap): void {
  const mayBe: Readonly<Record<GapReason, boolean>> = {
    'begun-anew': world.isLogDeleted(clientId),
    trimmed: world.isTrimmed,
    lost: hasLost(world, clientId),
  };
  if (!mayBe[reason])
    world.sim.fail(new Broken(`${name} says of a gap in the log of ${clientId}: ${reason}, which cannot be`));
}

/**
 * Where nothing has gone wrong for a minute, who follows the log is given what comes, at once, and though nothing more comes.
 *
 * @param withinMs how long after its webhook was answered 201 each has an event
 */
export function checkReaders(world: World, withinMs: number): readonly string[] {
  const { elapsed } = world.sim;
  const late = new Set(
    world.service.acknowledged.filter(({ at }) => at < elapsed - withinMs).map(({ idMsg }) => idMsg),
  );
  return world.clients.flatMap(({ clientId }) => {
    const history = new History(world, clientId);
    return world.readers.flatMap((reader) => {
      const { caller, name, kept } = reader;
      const isNarrowed = caller.customerId !== undefined;
      // Nobody else can read the cursor of a narrowed reader: it stands at the last event that it was given.
      const last = kept.findLast((item) => !isNarrowed || !('mark' in item));
      if (last === undefined || caller.client.clientId !== clientId) return [];
      // Nor can anybody say at which of several places it was given an event.
      if (isNarrowed && 'id' in last && history.again.has(last.id)) return [];
      const place =
        'id' in last
          ? history.placeOf(caller, last)
          : history.placeOfCursor(caller, 'mark' in last ? last.mark : last.cursor);
      const left = place === undefined ? undefined : history.next(reader, place);
      const { id = '' } = left === undefined ? {} : (history.log[left] ?? {});
      return late.has(id)
        ? [`${name} stands at event ${place} of the log, and was not given ${id} within ${withinMs / 1000} s`]
        : [];
    });
  });
}

/** Everything that has to hold once nothing has gone wrong for a minute. */
export async function checkEnd(world: World): Promise<readonly string[]> {
  const problems: string[] = [];
  const histories = new Map<string, History>();
  const historyOf = (clientId: string): History => {
    const known = histories.get(clientId) ?? new History(world, clientId);
    histories.set(clientId, known);
    return known;
  };
  for (const { clientId } of world.clients)
    problems.push(...problemsOfLog(world, clientId, historyOf(clientId)));
  for (const reader of world.readers)
    problems.push(...problemsOfReader(reader, historyOf(reader.caller.client.clientId)));
  for (const one of [...world.browsers.filter(({ isFull }) => !isFull), ...world.tabs])
    problems.push(...problemsOfReader(one, historyOf(one.caller.client.clientId)));
  for (const watcher of world.watchers) problems.push(...watcher.problems());
  for (const { streams } of world.rawReaders) {
    for (const stream of streams)
      problems.push(...problemsOfStream(stream, historyOf(stream.caller.client.clientId)));
  }
  for (const payer of world.payers) {
    for (const order of payer.orders) {
      if (!order.isOver && !order.isForgotten)
        problems.push(
          `${order.tag} is not over: ${order.told.map(({ status }) => status).join(', ') || 'nothing was told'}`,
        );
    }
  }
  problems.push(...(await problemsOfPayments(world, historyOf)));
  problems.push(...(await problemsOfGateways(world)));
  const { balanced } = world.service.made.world.ledger.check();
  if (!balanced) problems.push('the ledger is not balanced');
  problems.push(...(await problemsOfFeeds(world)), ...(await problemsOfLeaks(world)));
  return problems;
}

/** What was answered 201 is in the log, once, and what one gateway was given later is not before it. */
function problemsOfLog(world: World, clientId: string, { log }: History): readonly string[] {
  const problems: string[] = [];
  const places = new Map<string, number>();
  for (const [place, { id }] of log.entries()) {
    if (places.has(id)) problems.push(`event ${id} is in the log twice`);
    places.set(id, place);
  }
  /** Of each process of a gateway: when its last message was answered, and the furthest that it is in the log. */
  const furthest = new Map<string, { readonly at: number; readonly place: number; readonly idMsg: string }>();
  for (const { idMsg, type, at, sentAt, to, clientId: whose } of world.service.acknowledged) {
    if (whose !== clientId || world.isExcused(clientId, at)) continue;
    const place = places.get(idMsg);
    if (place === undefined) {
      problems.push(`${type} ${idMsg} was answered 201 after ${at / 1000} s, and is not in the log`);
      continue;
    }
    // Another gateway may have kept the same message before this one could.
    if (world.service.sent.get(idMsg) !== 1) continue;
    const before = furthest.get(to);
    if (before !== undefined && before.at < sentAt && before.place > place)
      problems.push(
        `${type} ${idMsg} came to ${to} after ${before.idMsg} was answered, and is before it in the log`,
      );
    if (before === undefined || place > before.place) furthest.set(to, { at, place, idMsg });
  }
  return problems;
}

/** What one stream has brought, against the log: in order, and nothing between left out. */
function problemsOfStream(stream: Stream, history: History): readonly string[] {
  const { caller, reader } = stream;
  let stands = stream.after === undefined ? undefined : history.placeOfCursor(caller, stream.after);
  let life = stream.after === undefined ? undefined : lifeOf(caller, stream.after);
  for (const item of stream.items) {
    if ('id' in item && caller.customerId !== undefined && history.again.has(item.id)) return [];
    const place = 'mark' in item ? history.placeOfCursor(caller, item.mark) : history.placeOf(caller, item);
    const own = lifeOf(caller, 'mark' in item ? item.mark : item.cursor);
    if (life !== undefined && own !== life)
      return [`${reader} was brought from one life of the log into another, and told of no gap`];
    life = own;
    if (!('mark' in item) && place !== undefined && history.isOthers(stream, place))
      return [`${reader} (${caller.name}) was sent ${item.id}, which it may not see`];
    // What a failover has lost ends what can be said.
    if (place === undefined) {
      if ('mark' in item) continue;
      return [];
    }
    if (stands !== undefined && !('mark' in item) && place <= stands)
      return [
        `${reader} was sent event ${place} of the log where it had been told that it stands at ${stands}`,
      ];
    const left = stands === undefined ? undefined : history.next(stream, stands);
    if (left !== undefined && left < ('mark' in item ? place + 1 : place))
      return [
        `${reader} was brought from ${stands} to ${place} of the log over ${history.log[left]?.id} in one stream`,
      ];
    stands = Math.max(place, stands ?? place);
  }
  return [];
}

/** What a reader, or a browser of some tabs, has kept, or a tab has handed out, against the log: in order, nothing left out, up to the head. */
function problemsOfReader(
  reader: Seeing & { readonly name: string; readonly kept: readonly Kept[] },
  history: History,
): readonly string[] {
  const { caller, name } = reader;
  /** Where it stands in the log; undefined where it may stand anywhere, null where it was given what the log lost. */
  let stands: number | null | undefined;
  /** Of a list that tabs share, what is in it already: behind a gap events come again that stand before it, and are not stored again. */
  const listed = new Set<number>();
  const next = (): number | undefined => {
    let place = stands == null ? undefined : history.next(reader, stands);
    while (place !== undefined && listed.has(place)) place = history.next(reader, place);
    return place;
  };
  let life: string | undefined;
  for (const item of reader.kept) {
    const own = lifeOf(caller, 'mark' in item ? item.mark : item.cursor);
    if (!('gap' in item) && life !== undefined && own !== life)
      return [`${name} was brought from one life of the log into another, and told of no gap`];
    life = own;
    if ('gap' in item) {
      stands = undefined;
      continue;
    }
    if ('mark' in item) {
      const place = history.placeOfCursor(caller, item.mark);
      if (place === undefined || stands === null) continue;
      const left = next();
      if (left !== undefined && left <= place)
        return [`${name} has kept the place ${place} of the log, before event ${left}`];
      if (stands !== undefined && place < stands)
        return [`${name} has kept the place ${place} of the log behind event ${stands}`];
      stands = Math.max(place, stands ?? place);
      continue;
    }
    // Of an event that stood at several places a narrowed reader's cursor does not say at which it was given.
    if (caller.customerId !== undefined && history.again.has(item.id)) {
      stands = undefined;
      continue;
    }
    // What a failover has lost stood elsewhere, also where the message was delivered again.
    const place = history.placeOf(caller, item);
    if (stands === null && place !== undefined)
      return [`${name} was given ${item.id} after an event that the log lost, and told of no gap`];
    if (place !== undefined && stands != null && place !== next())
      return [`${name} was given event ${place} of the log (${item.id}) after ${stands}, not ${next()}`];
    stands = place ?? null;
    if (reader instanceof Browser && place !== undefined) listed.add(place);
  }
  if (stands === null) return [`${name} stands at an event that the log lost`];
  const left = next();
  return left === undefined
    ? []
    : [`${name} stands at event ${stands} of the log, and was not given ${left} of ${history.log.length}`];
}

async function problemsOfGateways(world: World): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const { url, name } of world.gateways) {
    let text: string | undefined;
    // A gateway that nobody asks anything cannot know that the service is back.
    const query = {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${world.callers.whole[0]?.token()}`,
      },
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
