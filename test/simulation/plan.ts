import { SWITCHED_LAYERS } from '../../src/graphql/layers.ts';
import type { App } from './apps.ts';
import type { Chance } from './chance.ts';
import type { Simulation } from './core.ts';
import type { Fault, Nemesis } from './faults.ts';
import { type CallFaults, NO_CALL_FAULTS } from './service.ts';
import type { Size, World } from './world.ts';

/** What a run is about. */
export const ONLY = ['money', 'events'] as const;
export type Only = (typeof ONLY)[number];

/**
 * How much happens in an hour. `dense`: all the time something, and a fault every few seconds. `ordinary`: 50 readers, a credit and a
 * payment every 18 s, and a fault every few minutes.
 */
export const TRAFFIC = ['dense', 'ordinary'] as const;
export type Traffic = (typeof TRAFFIC)[number];

/** How many times as long everybody takes between two things in an ordinary hour, and how many times as rarely a call fails. */
const ORDINARY_PACE = 20;
/** Of an ordinary hour: 200 credits and 200 payments. */
const ORDINARY_EVERY_MS = 18_000;

/** What the seed has drawn for one run. */
export interface Plan {
  readonly size: Size;
  readonly creditEveryMs: number;
  readonly orderEveryMs: number;
  readonly words: string;
  /** Lets things go wrong. */
  begin(world: World, nemesis: Nemesis): void;
  /** Puts right what no single fault has to. */
  calm(world: World): void;
}

const seconds = (chance: Chance, low: number, high: number): number => chance.between(low, high) * 1000;

/**
 * For how long one gateway has no way to Redis: some seconds, or so long that another settles meanwhile what it had begun, and it comes back
 * with what it knew.
 */
const awayMs = (chance: Chance, mostSeconds: number): number =>
  chance.happens(0.4) ? seconds(chance, 25, 90) : seconds(chance, 0.5, mostSeconds);

/** Draws what goes wrong: most kinds never, a few often. */
export function planOf(sim: Simulation, only: Only | undefined, traffic: Traffic): Plan {
  const chance = sim.chance('plan');
  const isDense = traffic === 'dense';
  const pace = isDense ? 1 : ORDINARY_PACE;
  const draw = (probability: number, low: number, high: number): number =>
    chance.happens(probability) ? chance.between(low, high) : 0;
  /** Of a call: what fails all the time in a dense hour fails now and then in an ordinary one. */
  const rarely = (probability: number, low: number, high: number): number =>
    draw(probability, low, high) / pace;
  const isEmbedded = sim.chance('store').happens(0.2);
  const size: Size = {
    gateways: isEmbedded ? 1 : 2,
    isEmbedded,
    pace,
    payingPace: pace * (focusOf(sim, isEmbedded) === undefined ? 1 : HASTE),
    replicas: replicasOf(sim, chance.pick([0, 1, 1, 2])),
    readers: only === 'money' ? 1 : (isDense ? 1 : 43) + chance.below(4),
    rawReaders: only === 'money' ? 0 : 2 + chance.below(3),
    restless: only !== 'money' && sim.chance('restlessness').happens(0.25) ? 2 : 0,
    browsers: only === 'money' || sim.chance('browsers').happens(0.6) ? 0 : 1,
    payers: only === 'events' ? 0 : 1 + chance.below(2),
    payingTabs: sim.chance('paying tabs').happens(0.4),
    watchers: only === 'events' || sim.chance('watchers').happens(0.5) ? 0 : 2,
    rawPayers: only === 'events' ? 0 : 1,
    sharers: only === 'events' || sim.chance('sharers').happens(0.4) ? 0 : 1,
    askers: only === 'events' || only === 'money' ? 0 : 1 + chance.below(3),
    skewMs: draw(0.3, 10, 5_000),
    mode: chance.pick(['passthrough', 'service']),
    tokenSeconds: chance.pick([30, 120, 3_600]) * pace,
    environment: {
      // A log without Redis says nothing of what it has given up: its whole length is what is compared.
      ...(chance.happens(0.25) && !isEmbedded && { EVENTS_RETENTION: String(chance.pick([5, 20, 60])) }),
      ...(chance.happens(0.3) && { LAYERS_OFF: layersOff(chance) }),
      ...(sim.chance('grace').happens(0.5) && { SHUTDOWN_GRACE_MS: '2000' }),
      ...(sim.chance('report').happens(0.5) && { UPSTREAM_REPORT: 'true' }),
    },
  };
  const calls: CallFaults = {
    ...NO_CALL_FAULTS,
    refused: rarely(0.2, 0.02, 0.3),
    lostRequest: rarely(0.2, 0.02, 0.3),
    lostAnswer: rarely(0.35, 0.02, 0.4),
    silence: rarely(0.2, 0.01, 0.2),
    lateRequest: rarely(0.2, 0.01, 0.2),
    lateAnswer: rarely(0.25, 0.02, 0.3),
    twice: rarely(0.2, 0.02, 0.4),
    error: rarely(0.3, 0.02, 0.4),
    truncated: rarely(0.15, 0.02, 0.2),
    wrongShape: rarely(0.15, 0.02, 0.2),
    stranger: rarely(0.25, 0.05, 0.4),
    mixed: sim.chance('mixed').happens(0.2) ? sim.chance('how mixed').between(0.02, 0.3) / pace : 0,
  };
  const webhooks = {
    lost: rarely(0.3, 0.02, 0.3),
    lostAnswer: rarely(0.3, 0.02, 0.3),
    twice: rarely(0.3, 0.02, 0.3),
    late: rarely(0.3, 0.02, 0.3),
  };
  const latency: readonly [number, number] = chance.pick([
    [0.2, 2],
    [1, 30],
    [5, 400],
  ]);
  const focus = focusOf(sim, isEmbedded);
  const everyMs = chance.between(2_000, 25_000) * pace * (focus === undefined ? 1 : HASTE);
  const weights = new Map<string, number>();
  for (const kind of KINDS) {
    const weight =
      kind === 'replicas go one by one'
        ? weightOneByOne(sim)
        : weightOf(LATER.has(kind) ? sim.chance(kind) : chance);
    weights.set(kind, isEmbedded && OF_REDIS.has(kind) ? 0 : weight);
  }
  if (focus !== undefined) weights.set(focus, 5);
  const ofLog = focusOfLog(sim, isEmbedded);
  if (ofLog !== undefined) weights.set(ofLog, 3);
  // Who begins a stream at every moment is there as Redis goes.
  if (size.restless > 0)
    for (const kind of AS_ONE_SUBSCRIBES)
      weights.set(kind, isEmbedded ? 0 : Math.max(1, weights.get(kind) ?? 0));
  const often = (low: number, high: number): number =>
    isDense ? chance.between(low, high) : ORDINARY_EVERY_MS;
  const creditEveryMs = only === 'money' ? 30_000 : often(300, 10_000);
  const orderEveryMs = often(1_000, 15_000);
  const chosen = (found: Readonly<Record<string, number>>) =>
    Object.entries(found)
      .filter(([, value]) => value > 0)
      .map(([name, value]) => `${name} ${value.toPrecision(2)}`);
  const words = [
    `${size.gateways} gateways, ${size.mode}, ${JSON.stringify(size.environment)}, ${isEmbedded ? 'files of its own' : `${size.replicas} replicas`}, ${size.readers} and ${size.rawReaders} readers${size.restless > 0 ? ', restless ones' : ''}, ${size.payers} and ${size.rawPayers} payers, ${size.sharers > 0 ? 'keys that are shared, ' : ''}${size.browsers > 0 ? 'tabs, ' : ''}${size.payingTabs ? 'tabs that pay, ' : ''}${size.watchers > 0 ? 'watchers, ' : ''} ${size.askers} askers, clocks ±${size.skewMs.toFixed(0)} ms, ways of ${latency.join(' to ')} ms`,
    `a fault every ${(everyMs / 1000).toFixed(1)} s: ${chosen(Object.fromEntries(weights)).join(', ') || 'none'}`,
    `calls: ${chosen({ ...calls }).join(', ') || 'well'}`,
    `webhooks: ${chosen(webhooks).join(', ') || 'well'}`,
  ].join('; ');
  return {
    size,
    creditEveryMs,
    orderEveryMs,
    words,
    begin(world, nemesis) {
      world.network.weather.latency = latency;
      const { service } = world;
      service.mayFail = (kind, where) => nemesis.strikes(kind, where);
      service.calls = calls;
      service.webhooks = webhooks;
      const faults = faultsOf(world).map((fault) => ({
        ...fault,
        weight: (weights.get(fault.kind) ?? 0) * (RATIOS[fault.kind] ?? 1),
      }));
      nemesis.begin(
        faults.filter(({ weight }) => weight > 0),
        everyMs,
      );
    },
    calm(world) {
      world.service.calls = NO_CALL_FAULTS;
      world.service.webhooks = { lost: 0, lostAnswer: 0, twice: 0, late: 0 };
      world.network.weather.latency = [0.5, 20];
      world.redis.mend();
      for (const place of world.gateways) place.start();
      for (const app of world.apps) app.start();
      world.calmSince = world.sim.elapsed;
      for (const reader of world.readers) reader.slowness = 0;
    },
  };
}

/** What a third of all runs are about, beside all else: one thing that happens in the midst of payments, and many of these. */
function focusOf(sim: Simulation, isEmbedded: boolean): (typeof KINDS)[number] | undefined {
  const chance = sim.chance('focus');
  const kinds = OF_PAYMENTS.filter((kind) => !isEmbedded || !OF_REDIS.has(kind));
  return chance.happens(0.35) ? chance.pick(kinds) : undefined;
}

/** How likely a kind of fault is beside others: most never. */
const weightOf = (chance: Chance, probability = 0.35): number =>
  chance.happens(probability) ? chance.between(0.1, 1) : 0;

/** The same for what needs two replicas, and takes long. */
const weightOneByOne = (sim: Simulation): number => weightOf(sim.chance('replicas go one by one'), 0.1);

/** How many replicas there are: one at least where one is to be promoted. */
const replicasOf = (sim: Simulation, drawn: number): number => {
  if (weightOneByOne(sim) > 0) return 2;
  const isDrawn =
    weightOf(sim.chance('lost replica promoted')) > 0 || focusOfLog(sim, false) === 'lost replica promoted';
  return isDrawn ? sim.chance('replicas to be promoted').pick([1, 1, 1, 2]) : drawn;
};

/** What a third of all runs are about beside that, whether or not it is about payments: one thing that happens to the log. */
function focusOfLog(sim: Simulation, isEmbedded: boolean): (typeof KINDS)[number] | undefined {
  const chance = sim.chance('focus of the log');
  return !isEmbedded && chance.happens(0.35) ? chance.pick(OF_LOG) : undefined;
}

/** Some of the layers that may be left out. */
const layersOff = (chance: Chance): string => SWITCHED_LAYERS.filter(() => chance.happens(0.3)).join(',');

const KINDS = [
  'gateway killed',
  'gateway replaced',
  'gateway cut off',
  'app killed',
  'app killed as it keeps something',
  'app killed as it pays',
  'app cut off',
  'slow reader',
  'Redis restarted',
  'Redis stands still',
  'replica lost',
  'failover',
  'gateway cut off from Redis',
  'service away',
  'log deleted',
  'connections forgotten',
  'gateway killed as it answers',
  'replies of Redis lost',
  'gateway replaced as it pays',
  'payments stopped',
  'record put back',
  'gateway cut off from Redis as it pays',
  'connections forgotten as they close',
  'payment closed as Redis is away',
  'lost replica promoted',
  'replicas go one by one',
  'person signs out',
] as const;

/** What happens in the midst of payments. */
const OF_PAYMENTS = [
  'replies of Redis lost',
  'gateway replaced as it pays',
  'payments stopped',
  'record put back',
  'gateway cut off from Redis as it pays',
] as const;
/** What happens to the log of events. */
const OF_LOG = [
  'lost replica promoted',
  'failover',
  'log deleted',
  'gateway killed as it answers',
  'gateway cut off from Redis',
] as const satisfies readonly (typeof KINDS)[number][];
/** By how much sooner things happen, and people pay, in a run that is about one of these. */
const HASTE = 0.3;

/** What came to the list later draws by itself, and changes nothing of what the others draw. */
const LATER: ReadonlySet<string> = new Set<(typeof KINDS)[number]>([
  'connections forgotten',
  'gateway killed as it answers',
  'connections forgotten as they close',
  'payment closed as Redis is away',
  'lost replica promoted',
  'replicas go one by one',
  'person signs out',
  ...OF_PAYMENTS,
]);

/** For how long replies are lost to a gateway that was cut off, in ms. */
const LOSING_MS = 3_000;
/** Words of answers that promise something: that a webhook is kept, that a payment is done. */
const ACKNOWLEDGED = 'HTTP/1.1 201';
const PROMISES = [ACKNOWLEDGED, 'MoneyOutSuccess', 'TransactionSuccess'];

/** What can happen to Redis alone. */
const OF_REDIS: ReadonlySet<string> = new Set<(typeof KINDS)[number]>([
  'Redis restarted',
  'Redis stands still',
  'replica lost',
  'failover',
  'gateway cut off from Redis',
  'log deleted',
  'replies of Redis lost',
  'record put back',
  'gateway cut off from Redis as it pays',
  'payment closed as Redis is away',
  'lost replica promoted',
  'replicas go one by one',
]);

/** What happens more where somebody subscribes anew all the time. */
const AS_ONE_SUBSCRIBES = [
  'replies of Redis lost',
  'gateway cut off from Redis',
] as const satisfies readonly (typeof KINDS)[number][];

/** What finds little unless it is frequent, and what leaves little to look at. */
const RATIOS: Readonly<Record<string, number>> = {
  'log deleted': 0.4,
  'app killed as it keeps something': 3,
  'app killed as it pays': 3,
  'gateway killed as it answers': 3,
  'gateway replaced as it pays': 3,
  'gateway cut off from Redis as it pays': 2,
  'record put back': 2,
  'lost replica promoted': 3,
  'replicas go one by one': 4,
  failover: 1.5,
};

function faultsOf(world: World): readonly Omit<Fault, 'weight'>[] {
  const { network, redis, service, gateways, sim } = world;
  const { apps } = world;
  const cut = (name: string, ms: number) => {
    network.weather.cut.add(name);
    return { words: name, ms, end: () => network.mend(name) };
  };
  /** Ends what may have forgotten a command of the operator. */
  const forgetting = (end: () => void) => (): void => {
    end();
    world.operator.repeat();
  };
  const mendApp = (app: App): void => {
    app.spare();
    app.start();
  };
  const byKind: Record<(typeof KINDS)[number], Fault['strike']> = {
    'gateway killed': (chance) => {
      const place = chance.pick(gateways);
      place.kill();
      return { words: place.name, ms: seconds(chance, 0.1, 15), end: () => place.start() };
    },
    'gateway killed as it answers': (chance) => {
      const place = chance.pick(gateways);
      if (place.process?.isAlive !== true) return undefined;
      const promise = chance.pick(PROMISES);
      // What it has answered 201 is then in its spool, and nowhere else: in one that the process after it does not take for its own.
      const isCut = promise === ACKNOWLEDGED && !world.isEmbedded && chance.happens(0.6);
      const neighbour = isCut ? place.startBesideAnother() : undefined;
      if (isCut) redis.cut.add(place.name);
      const { process } = place;
      network.endAfter(process, promise);
      const end = () => {
        network.spare(process);
        redis.cut.delete(place.name);
        neighbour?.kill();
        place.start();
      };
      const words = `${place.name} ${promise}${isCut ? ', cut off from Redis' : ''}`;
      return { words, ms: seconds(chance, isCut ? 5 : 2, 20), end };
    },
    'gateway replaced': (chance) => {
      const place = chance.pick(gateways);
      if (!place.isUp) return undefined;
      place.stop().then(
        () => place.start(),
        (error: unknown) => sim.fail(error),
      );
      return { words: place.name, ms: 45_000, end: () => {} };
    },
    'gateway replaced as it pays': (chance) => {
      const place = chance.pick(gateways);
      const isCut = chance.happens(0.6);
      const ms = chance.between(50, 6_000);
      const when = chance.pick(['onTold', 'onLeaving'] as const);
      const spare = () => {
        service[when] = () => {};
      };
      service[when] = (process) => {
        if (process !== place.process || !place.isUp) return;
        spare();
        if (isCut) redis.cut.add(place.name);
        sim.after(ms, undefined, () => redis.cut.delete(place.name));
        place.stop().then(
          () => place.start(),
          (error: unknown) => sim.fail(error),
        );
      };
      const end = () => {
        spare();
        redis.cut.delete(place.name);
      };
      return {
        words: `${place.name}${isCut ? ', cut off from Redis' : ''}`,
        ms: seconds(chance, 5, 40),
        end,
      };
    },
    'gateway cut off from Redis as it pays': (chance) => {
      const { name } = chance.pick(gateways);
      const step = chance.pick(['claimed', 'sent'] as const);
      redis.cutting = { process: name, step, isReplied: chance.happens(0.6), ms: seconds(chance, 0.5, 12) };
      const end = () => {
        redis.cutting = undefined;
        redis.cut.delete(name);
      };
      return { words: `${name}, ${step}`, ms: seconds(chance, 10, 30), end };
    },
    'payment closed as Redis is away': (chance) => {
      const { name, process } = chance.pick(gateways);
      const ms = awayMs(chance, 15);
      service.closing = {
        process,
        onAnswer() {
          redis.cut.add(name);
          sim.after(ms, undefined, () => redis.cut.delete(name));
        },
      };
      const end = () => {
        service.closing = undefined;
        redis.cut.delete(name);
      };
      return { words: `of ${name}`, ms: ms + seconds(chance, 10, 30), end };
    },
    'payments stopped': (chance) => {
      world.operator.stopPayments();
      return { words: '', ms: seconds(chance, 5, 30), end: () => world.operator.resume() };
    },
    'record put back': (chance) => {
      const { operator } = world;
      if (chance.happens(0.25))
        return {
          words: 'to one that was put back',
          ms: seconds(chance, 22, 35),
          end: operator.copyHeldRecord(),
        };
      const asOneLeaves = chance.happens(0.6);
      const ms = asOneLeaves ? seconds(chance, 5, 20) : seconds(chance, 0.5, 15);
      return { words: asOneLeaves ? 'as one pays' : '', ms, end: operator.copyRecord(asOneLeaves) };
    },
    'replies of Redis lost': (chance) => {
      const { name } = chance.pick(gateways);
      redis.losing.set(name, chance.between(0.05, 0.6));
      return { words: `to ${name}`, ms: seconds(chance, 0.5, 15), end: () => redis.losing.delete(name) };
    },
    'gateway cut off': (chance) => cut(chance.pick(gateways).name, seconds(chance, 0.5, 40)),
    'app killed': (chance) => {
      const app = chance.pick(apps);
      app.kill();
      return { words: app.name, ms: seconds(chance, 0.01, 10), end: () => app.start() };
    },
    'person signs out': (chance) => {
      const app = chance.pick<App>([...world.readers, ...world.payers]);
      if (!app.signOut()) return undefined;
      const end = () => {
        app.kill();
        app.start();
      };
      return { words: `of ${app.name}`, ms: seconds(chance, 0.01, 60), end };
    },
    'app killed as it keeps something': (chance) => {
      const app: App = chance.pick<App>(
        chance.happens(0.5) || world.payers.length === 0 ? world.readers : world.payers,
      );
      app.endsAsItKeeps = true;
      return { words: app.name, ms: seconds(chance, 1, 20), end: () => mendApp(app) };
    },
    'app killed as it pays': (chance) => {
      if (world.payers.length === 0) return undefined;
      const payer = chance.pick(world.payers);
      payer.endsAfterPress = chance.between(1, 300);
      return { words: payer.name, ms: seconds(chance, 1, 20), end: () => mendApp(payer) };
    },
    'app cut off': (chance) => {
      const readers = [...world.readers, ...world.rawReaders];
      return cut(chance.pick(chance.happens(0.5) ? readers : apps).name, seconds(chance, 0.5, 60));
    },
    'connections forgotten': (chance) => {
      const { name } = chance.pick([...apps, ...gateways]);
      network.forget(name);
      return { words: `of ${name}`, ms: 0, end: () => {} };
    },
    'connections forgotten as they close': (chance) => {
      const place = chance.pick(gateways);
      const isReplaced = chance.happens(0.5) && place.isUp;
      network.forgottenAsTheyClose.add(place.name);
      if (isReplaced)
        place.stop().then(
          () => place.start(),
          (error: unknown) => sim.fail(error),
        );
      return {
        words: `of ${place.name}${isReplaced ? ', which is replaced' : ''}`,
        ms: seconds(chance, 5, 40),
        end: () => network.forgottenAsTheyClose.delete(place.name),
      };
    },
    'slow reader': (chance) => {
      const reader = chance.pick(world.readers);
      reader.slowness = chance.between(100, 3_000);
      return {
        words: reader.name,
        ms: seconds(chance, 2, 60),
        end: () => Object.assign(reader, { slowness: 0 }),
      };
    },
    'Redis restarted': (chance) => {
      const { primary } = redis;
      primary.stop();
      const end = () => {
        if (!primary.isUp) primary.startAgain();
        redis.mend();
      };
      return { words: primary.name, ms: seconds(chance, 0.1, 10), end };
    },
    'Redis stands still': (chance) => {
      const ms = seconds(chance, 0.3, 8);
      redis.primary.freeze(ms);
      return { words: redis.primary.name, ms, end: () => {} };
    },
    'replica lost': (chance) => {
      const replicas = redis.replicas();
      if (replicas.length === 0) return undefined;
      const replica = chance.pick(replicas);
      const isSilent = chance.happens(0.5);
      redis.lose(replica, isSilent);
      return {
        words: `${replica.name}${isSilent ? ', without a word' : ''}`,
        ms: seconds(chance, 0.5, 60),
        end: () => redis.mend(),
      };
    },
    failover: (chance) => {
      const promotable = redis.promotable();
      if (promotable.length === 0 || !redis.primary.isUp) return undefined;
      const replica = chance.pick(promotable);
      const isOldAlive = chance.happens(0.6);
      const areConnectionsEnded = chance.happens(0.35);
      const words = `from ${redis.primary.name} to ${replica.name}${isOldAlive ? ', and the old one does not know' : ''}`;
      const end = forgetting(redis.failOver(replica, isOldAlive, areConnectionsEnded));
      return { words, ms: seconds(chance, 0.5, 15), end };
    },
    'lost replica promoted': (chance) => {
      const promotable = redis.promotable();
      if (promotable.length === 0 || !redis.primary.isUp) return undefined;
      // Of two, one may take over first: then it has only just been promoted as it is left alone.
      const isTwice = promotable.length > 1 && chance.happens(0.6);
      const ends: (() => void)[] = [];
      if (redis.servers.length === 2 && chance.happens(0.7)) {
        const { primary } = redis;
        return {
          words: `${promotable[0]?.name}, and the one before it again`,
          ms: seconds(chance, 9, 20),
          end: forgetting(
            redis.replaceAndPromoteAgain(primary, promotable[0] ?? primary, seconds(chance, 0.5, 8)),
          ),
        };
      }
      const [first] = promotable;
      if (isTwice && first !== undefined) ends.push(redis.failOver(first, chance.happens(0.3)));
      const replica = promotable.at(-1) ?? redis.primary;
      // Without a word: of a replica that has said goodbye, a process that begins after that over redis:// does not know
      // (docs/events.md, "What that does not cover").
      redis.lose(replica, true);
      let isOver = false;
      sim.after(seconds(chance, 0.2, 8), undefined, () => {
        // Nobody would end a rule that begins as the fault is over.
        if (!isOver && redis.primary.isUp && redis.promotable().includes(replica))
          ends.push(redis.failOver(replica, chance.happens(0.3)));
      });
      const end = () => {
        isOver = true;
        for (const over of ends) over();
        redis.mend();
        world.operator.repeat();
      };
      return { words: `${replica.name}${isTwice ? ', after another' : ''}`, ms: seconds(chance, 9, 20), end };
    },
    'replicas go one by one': (chance) => {
      const [first, second] = redis.replicas();
      if (first === undefined || second === undefined || !redis.primary.isUp) return undefined;
      const ends: (() => void)[] = [redis.keepAway(first)];
      let isOver = false;
      const later = (ms: number, what: () => void) => sim.after(ms, undefined, () => !isOver && what());
      const secondMs = seconds(chance, 25, 30);
      later(secondMs, () => {
        if (redis.replicas().includes(second)) ends.push(redis.keepAway(second));
      });
      later(secondMs + seconds(chance, 3, 9), () => {
        if (redis.primary.isUp && redis.promotable().includes(second))
          ends.push(redis.failOver(second, chance.happens(0.3)));
      });
      const end = () => {
        isOver = true;
        for (const over of ends) over();
        redis.mend();
        world.operator.repeat();
      };
      return { words: `${first.name}, then ${second.name}`, ms: secondMs + seconds(chance, 9, 15), end };
    },
    'gateway cut off from Redis': (chance) => {
      const { name } = chance.pick(gateways);
      redis.cut.add(name);
      const ms = awayMs(chance, 20);
      // What comes meanwhile of whom little comes it has to read by itself, once it can.
      const isDoubtful = chance.happens(0.4);
      if (isDoubtful) sim.after(ms / 2, undefined, () => world.credit(world.quiet));
      const end = () => {
        redis.cut.delete(name);
        if (!isDoubtful || redis.losing.has(name)) return;
        redis.losing.set(name, 0.7);
        sim.after(LOSING_MS, undefined, () => redis.losing.delete(name));
      };
      return { words: `${name}${isDoubtful ? ', and its first replies are lost' : ''}`, ms, end };
    },
    'log deleted': (chance) => {
      if (!redis.primary.isUp) return undefined;
      const isTwice = chance.happens(0.4);
      const { name, clientId } = isTwice && chance.happens(0.8) ? world.quiet : chance.pick(world.clients);
      // Who comes back only after that has a cursor of the log that was.
      const away = isTwice || chance.happens(0.6) ? world.readersOf(clientId) : [];
      let isOver = false;
      const come = (): void => {
        for (const reader of away) reader.start();
      };
      const deleteIt = (): void => {
        for (const reader of away) reader.kill();
        world.deleteLog(clientId);
      };
      deleteIt();
      const ms = seconds(chance, 3, 7);
      if (isTwice) {
        // They come meanwhile, and stand at the beginning of a log that is deleted as well.
        sim.after(ms / 10, undefined, come);
        sim.after(ms, undefined, () => !isOver && redis.primary.isUp && deleteIt());
      }
      const how = isTwice ? ', and once more' : away.length > 0 ? ', as its readers are away' : '';
      const end = (): void => {
        isOver = true;
        come();
      };
      return { words: `of ${name}${how}`, ms: ms * (isTwice ? 1.5 : 1), end };
    },
    'service away': (chance) => {
      const { calls } = service;
      service.calls = { ...calls, refused: 1 };
      const ms = seconds(chance, 1, 30);
      // Then it takes connections again, and says nothing: who tries whether it is back may leave.
      const silentMs = chance.happens(0.5) ? seconds(chance, 2, 8) : 0;
      sim.after(ms, undefined, () => {
        if (silentMs > 0 && service.calls.refused === 1) service.calls = { ...calls, silence: 0.9 };
      });
      const end = () => Object.assign(service, { calls });
      return { words: silentMs > 0 ? 'and then silent' : '', ms: ms + silentMs, end };
    },
  };
  return KINDS.map((kind) => ({ kind, strike: byKind[kind] }));
}
