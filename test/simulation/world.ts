import { rmSync } from 'node:fs';
import type { ClientView } from '../../packages/sandbox/src/control-views.ts';
import { EVENT_TYPES } from '../../src/events/log.ts';
import { useListening } from '../../src/transport/listen.ts';
import { usePools } from '../../src/upstream/call/pool.ts';
import { installAmbient } from './ambient.ts';
import { type App, type AppWorld, Reader } from './apps.ts';
import { Asker } from './askers.ts';
import { type Caller, Callers, type Mode } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Simulation } from './core.ts';
import { GatewayPlace } from './gateways.ts';
import type { Appends } from './history.ts';
import { KeySharers } from './key-sharers.ts';
import { Network } from './network.ts';
import { Operator } from './operator.ts';
import { type Order, Orders } from './orders.ts';
import { Payer } from './payers.ts';
import { RawPayer } from './raw-payers.ts';
import { recordsIn } from './records.ts';
import { Service } from './service.ts';
import { RedisGroup } from './stores.ts';
import { type Known, RawReader, RESTLESS, type SentAt } from './streams.ts';
import { Browser, Tab } from './tabs.ts';
import { Movements, Truth } from './truth.ts';
import { Watcher } from './watchers.ts';

/** How much there is of what. */
export interface Size {
  readonly gateways: number;
  readonly replicas: number;
  /** Whether one gateway keeps events and payments in files of its own, without Redis. */
  readonly isEmbedded: boolean;
  /** How many times as long as in a dense hour everybody takes between two things. */
  readonly pace: number;
  /** Likewise between two payments. */
  readonly payingPace: number;
  readonly readers: number;
  readonly rawReaders: number;
  /** Devices of one caller whose app subscribes anew at each of its screens. */
  readonly restless: number;
  /** Browsers with two tabs that share what they store. */
  readonly browsers: number;
  readonly payers: number;
  /** Whether each payer has two tabs. */
  readonly payingTabs: boolean;
  readonly watchers: number;
  readonly rawPayers: number;
  readonly sharers: number;
  readonly askers: number;
  readonly skewMs: number;
  readonly mode: Mode;
  /** How long the callers' tokens hold in service mode, in seconds. */
  readonly tokenSeconds: number;
  /** What the gateways are started with besides. */
  readonly environment: Readonly<Record<string, string>>;
}

/** How many credits come within a second or two on average, in a run in which they come so. */
const MEAN_BURST = 4.5;
/** How long it takes until nothing is left of what went wrong, in milliseconds: deadlines, and pauses of clients. */
const CALM_AFTER_MS = 60_000;

/** Gateways, their stores, the REST service and apps, on one simulation. */
export class World {
  readonly sim: Simulation;
  readonly network: Network;
  readonly service: Service;
  readonly redis: RedisGroup;
  readonly gateways: readonly GatewayPlace[];
  readonly clients: readonly ClientView[];
  readonly callers: Callers;
  readonly movements: Movements;
  readonly readers: readonly Reader[] = [];
  readonly rawReaders: readonly RawReader[] = [];
  readonly browsers: readonly Browser[] = [];
  readonly tabs: readonly Tab[] = [];
  readonly payers: readonly Payer[] = [];
  /** The second tab of each payer that has one. */
  readonly payerTabs: readonly Payer[] = [];
  readonly watchers: readonly Watcher[] = [];
  readonly rawPayers: readonly RawPayer[] = [];
  readonly askers: readonly Asker[] = [];
  readonly sharers: readonly KeySharers[] = [];
  readonly operator: Operator;
  /** Whether the only gateway keeps everything in files of its own. */
  readonly isEmbedded: boolean;
  /** Whether logs give up what is old. */
  readonly isTrimmed: boolean;
  /** When things have stopped going wrong; undefined while they do. */
  calmSince: number | undefined;
  /** Up to when the log of a client was deleted by an operator. */
  readonly #deleted = new Map<string, number>();
  readonly #isLogKept: boolean;
  readonly #undo: readonly (() => void)[];
  readonly #work: string;
  readonly #chance: Chance;
  readonly #watching: Chance;
  readonly #tabbing: Chance;
  readonly #made: Orders;
  #orders = 0;
  credits = 0;

  private constructor(
    parts: Pick<World, 'sim' | 'network' | 'service' | 'redis' | 'gateways' | 'clients' | 'callers'>,
    undo: readonly (() => void)[],
    work: string,
    { isEmbedded, environment, skewMs }: Size,
  ) {
    this.isEmbedded = isEmbedded;
    this.isTrimmed = environment['EVENTS_RETENTION'] !== undefined;
    this.#isLogKept = !this.isTrimmed && skewMs === 0;
    this.sim = parts.sim;
    this.network = parts.network;
    this.service = parts.service;
    this.redis = parts.redis;
    this.gateways = parts.gateways;
    this.clients = parts.clients;
    this.callers = parts.callers;
    this.movements = new Movements(parts.service);
    this.#undo = undo;
    this.#work = work;
    this.#chance = parts.sim.chance('world');
    this.#watching = parts.sim.chance('watching');
    this.#tabbing = parts.sim.chance('tabbing');
    this.#made = new Orders(parts.service, this.demo);
    this.operator = new Operator(this);
  }

  static async build(sim: Simulation, size: Size, work: string): Promise<World> {
    const undo = [installAmbient(sim)];
    const network = new Network(sim);
    const chance = sim.chance('balancer');
    const places: GatewayPlace[] = [];
    const anyGateway = (): string => {
      const up = places.filter(({ isUp }) => isUp);
      return chance.pick(up.length > 0 && chance.happens(0.9) ? up : places).url;
    };
    const service = await Service.start(sim, network, anyGateway);
    service.processAt = (url) => places.find((place) => place.url === url)?.processName ?? url;
    const redis = new RedisGroup(sim, size.replicas);
    undo.push(
      redis.install(),
      usePools(() => service.openPool()),
      useListening(async (server, { host = '' }) => {
        network.listen(host, server);
        return host;
      }),
    );
    const clients = await service.process.run(() => service.made.control.clients());
    const callers = new Callers(sim, size.mode, clients, work, size.tokenSeconds, service.issue);
    const environment = {
      ...callers.environment,
      ...(!size.isEmbedded && { REDIS_URL: 'redis://redis.sim:6379' }),
      ...size.environment,
    };
    for (let number = 0; number < size.gateways; number += 1) {
      const skewMs = chance.between(-size.skewMs, size.skewMs);
      places.push(new GatewayPlace(sim, work, number, environment, skewMs));
    }
    const world = new World(
      { sim, network, service, redis, gateways: places, clients, callers },
      undo,
      work,
      size,
    );
    world.#populate(size, { sim, network, url: anyGateway, pace: size.pace, payingPace: size.payingPace });
    return world;
  }

  get demo(): ClientView {
    const [demo] = this.clients;
    if (demo === undefined) throw new Error('the sandbox has no client');
    return demo;
  }

  get appends(): Appends {
    return this.redis.appends;
  }

  get apps() {
    return [
      ...this.readers,
      ...this.rawReaders,
      ...this.tabs,
      ...this.payers,
      ...this.payerTabs,
      ...this.watchers,
      ...this.rawPayers,
      ...this.sharers,
      ...this.askers,
    ];
  }

  /** Everything that somebody has ever paid. */
  get orders(): readonly Order[] {
    return [...this.payers, ...this.rawPayers, ...this.sharers].flatMap(({ orders }) => orders);
  }

  /** Texts of the payments that the record has as sent, and without an end. */
  recordedAsSent(): ReadonlySet<string> {
    if (this.isEmbedded) return new Set(this.gateways.flatMap((place) => place.embeddedSent()));
    const { keyspace } = this.redis.primary;
    const sent = recordsIn(keyspace).flatMap((key) => {
      // HMGET replies with a list of texts, null for what there is not.
      const [state, body] = keyspace.run('HMGET', [key, 'state', 'body']) as (string | null)[];
      return state === 'sent' && body != null ? [body] : [];
    });
    return new Set(sent);
  }

  /** Whether nothing has gone wrong for so long that every question has its answer. */
  readonly isCalm = (): boolean =>
    this.calmSince !== undefined && this.sim.elapsed - this.calmSince > CALM_AFTER_MS;

  /** Whether what was kept by then may be gone: an operator has deleted the log. */
  isExcused(clientId: string, at: number): boolean {
    return at <= (this.#deleted.get(clientId) ?? -1);
  }

  /**
   * Whether logs hold all that came: none was deleted, none is cut off, and no failover has lost anything; and clocks agree.
   *
   * @param again events that stood at several places
   */
  isLogWhole(again: ReadonlySet<string>): boolean {
    return this.#isLogKept && this.#deleted.size === 0 && again.size === 0;
  }

  /** Whether an operator has ever deleted the log of a client. */
  readonly isLogDeleted = (clientId: string): boolean => this.#deleted.has(clientId);

  /** An operator deletes the log of a client, and all that belongs to it. */
  deleteLog(clientId: string): void {
    const { primary } = this.redis;
    const keys = primary.keyspace
      .keys()
      .filter((key) => key.startsWith(`{${clientId}}:`) && /:(log|meta|seen|index|names)/.test(key));
    for (const key of keys) primary.run('DEL', [key]);
    this.#deleted.set(clientId, this.sim.elapsed + 5_000);
  }

  #populate(size: Size, apps: AppWorld): void {
    const { callers, service } = this;
    const truth = new Truth(service);
    const chance = this.sim.chance('callers');
    const [demo] = callers.whole;
    if (demo === undefined) throw new Error('nobody calls');
    const some = (): Caller => (chance.happens(0.6) ? demo : chance.pick(callers.all));
    const customer = callers.all.find(({ customerId }) => customerId !== undefined) ?? demo;
    /** One of the callers who see the least, in most runs that have such. */
    const one = (): Caller => (this.sim.chance('the narrowed').happens(0.6) ? customer : some());
    const known: Known = new Map();
    const sentAt: SentAt = (id) => service.sentAt.get(id);
    const processOf = (url: string) => this.gateways.find((place) => place.url === url)?.process;
    const made = <Made>(count: number, make: (index: number) => Made): Made[] =>
      Array.from({ length: count }, (_, index) => make(index));
    const browsing = this.sim.chance('whose browser');
    const colleagues = callers.whole.filter(({ client }) => client === demo.client);
    const browsers = made(
      size.browsers,
      (index) => new Browser(`browser ${index}`, browsing.happens(0.6) ? demo : browsing.pick(callers.all)),
    );
    const payers = made(
      size.payers,
      (index) => new Payer(apps, `payer ${index}`, demo, index % 2 === 1 ? 'fetch' : 'socket'),
    );
    const parts: Partial<World> = {
      readers: made(size.readers, (index) => {
        const caller = some();
        const kind = index % 4 === 3 || caller.customerId !== undefined ? 'moneyIn' : 'events';
        return new Reader(apps, `reader ${index}`, caller, {
          transport: index % 3 === 2 ? 'fetch' : 'socket',
          kind,
        });
      }),
      rawReaders: [
        ...made(
          size.rawReaders,
          (index) =>
            new RawReader(
              apps,
              `raw reader ${index}`,
              index === 0 ? one() : some(),
              known,
              processOf,
              sentAt,
            ),
        ),
        ...made(
          size.restless,
          (index) =>
            new RawReader(apps, `restless reader ${index}`, customer, known, processOf, sentAt, RESTLESS),
        ),
      ],
      browsers,
      tabs: browsers.flatMap((browser) => [
        new Tab(apps, `${browser.name} tab 0`, browser, 'socket'),
        new Tab(apps, `${browser.name} tab 1`, browser, 'fetch'),
      ]),
      payers,
      payerTabs: size.payingTabs
        ? payers.map((first) => new Payer(apps, `${first.name} tab 1`, demo, 'fetch', first))
        : [],
      watchers: made(
        size.watchers,
        (index) =>
          new Watcher(
            apps,
            `watcher ${index}`,
            colleagues[index % colleagues.length] ?? demo,
            index === 0 ? 'socket' : 'fetch',
            truth,
          ),
      ),
      rawPayers: made(
        size.rawPayers,
        (index) => new RawPayer(apps, `raw payer ${index}`, demo, this.#made, this.isCalm),
      ),
      sharers: made(size.sharers, () => new KeySharers(apps, callers.all, this.#made, this.isCalm)),
      askers: made(
        size.askers,
        (index) => new Asker(apps, `asker ${index}`, chance.pick(callers.all), truth, callers, this.isCalm),
      ),
    };
    Object.assign(this, parts);
    for (const payer of [...payers, ...this.payerTabs])
      payer.onDone = (id) => {
        for (const watcher of this.watchers) if (this.#watching.happens(0.4)) watcher.add(id);
      };
  }

  /** Starts everything, and lets the gateways register where webhooks are sent. */
  async begin(): Promise<void> {
    for (const place of this.gateways) place.start();
    await this.sim.runUntil(this.sim.elapsed + 10_000, () => this.gateways.every(({ isUp }) => isUp));
    const [first] = this.gateways;
    const { gateway } = first ?? {};
    if (gateway === undefined) throw new Error('no gateway came up');
    for (const client of this.clients) await this.#register(client, gateway.ingress);
    for (const app of this.apps) app.start();
    await this.sim.runUntil(this.sim.elapsed + 2_000);
  }

  /** Registers where the webhooks of a client are sent. */
  async #register(
    { clientId, accessToken }: ClientView,
    ingress: NonNullable<GatewayPlace['gateway']>['ingress'],
  ): Promise<void> {
    for (const type of EVENT_TYPES) {
      const body = {
        client_id: clientId,
        url: ingress.url(clientId, type),
        token: ingress.token(clientId, type),
        webhook_type: type,
        auth_type: 'AUTH',
      };
      const request = new Request(`http://service.sim/v1/clients/${clientId}/webhooks`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${accessToken}`,
          'content-type': 'application/json',
          host: 'service.sim',
        },
        body: JSON.stringify(body),
      });
      const answer = await this.service.process.run(() => this.service.made.app.fetch(request));
      if (answer.status >= 300) throw new Error(`the webhook was refused: ${await answer.text()}`);
    }
  }

  /** Lets credits arrive and people pay, until `isOver`. */
  traffic(creditEveryMs: number, orderEveryMs: number, isOver: () => boolean): void {
    const bursts = this.sim.chance('bursts');
    const isBursting = bursts.happens(0.35);
    const credit = (): void => {
      this.credit();
      for (let left = isBursting ? 1 + bursts.below(6) : 0, at = 0; left > 0; left -= 1) {
        at += bursts.between(10, 400);
        this.sim.after(at, undefined, () => isOver() || this.credit());
      }
    };
    const every = (ms: number, work: () => void): void => {
      this.sim.after(-Math.log(1 - this.#chance.number()) * ms, undefined, () => {
        if (isOver()) return;
        work();
        every(ms, work);
      });
    };
    if (creditEveryMs > 0) every(creditEveryMs * (isBursting ? MEAN_BURST : 1), credit);
    if (orderEveryMs > 0 && this.payers.length > 0) every(orderEveryMs, () => this.order());
  }

  /** The client to whose log the least comes. */
  get quiet(): ClientView {
    return this.clients.at(-1) ?? this.demo;
  }

  /** Those who follow the log of a client. */
  readersOf(clientId: string): readonly App[] {
    return [...this.readers, ...this.rawReaders].filter(({ caller }) => caller.client.clientId === clientId);
  }

  credit(client = this.#chance.happens(0.8) ? this.demo : this.#chance.pick(this.clients)): void {
    const { clabe } = this.#chance.pick(client.accounts.filter(({ status }) => status === 'ACTIVE'));
    this.#credit(client, clabe, `${1 + this.#chance.below(999)}.00`);
  }

  /** Credits every account once. */
  creditAll(): void {
    for (const client of this.clients) {
      for (const { clabe, status } of client.accounts)
        if (status === 'ACTIVE') this.#credit(client, clabe, '1.00');
    }
  }

  #credit(client: ClientView, clabe: string, amount: string): void {
    this.credits += 1;
    const { service } = this;
    service.process.run(() => {
      const order = { clabe, amount, payerName: 'Ordenante', concept: 'Pago' };
      service.made.control.credit(order).then(
        // A credit can be returned for as long as it is watched.
        ({ transaction }) =>
          client === this.demo && this.#watching.happens(0.1) && this.watchers[0]?.add(transaction.id),
        (error: unknown) => this.sim.fail(error),
      );
    });
  }

  order(): void {
    this.#orders += 1;
    const order = this.#made.make(this.#chance, `order ${this.#orders}`);
    this.sim.say(`${order.tag}: ${order.mutation} ${JSON.stringify(order.input)}`);
    const payer = this.#chance.pick(this.payers);
    payer.order(order);
    const tab = this.payerTabs[this.payers.indexOf(payer)];
    if (tab !== undefined && this.#tabbing.happens(0.5))
      this.sim.after(this.#tabbing.between(0, this.#tabbing.pick([0.5, 3_000])), undefined, () =>
        tab.join(order),
      );
  }

  /** Ends everything at once, as nobody looks any more. */
  async end(): Promise<void> {
    for (const app of this.apps) app.kill();
    for (const place of this.gateways) place.kill();
    this.service.process.kill();
    this.network.end();
    await this.sim.end();
    for (const put of [...this.#undo].reverse()) put();
    rmSync(this.#work, { recursive: true, force: true });
  }
}
