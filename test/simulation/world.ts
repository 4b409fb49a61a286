import { rmSync } from 'node:fs';
import type { ClientView } from '../../packages/sandbox/src/control-views.ts';
import { EVENT_TYPES } from '../../src/events/log.ts';
import { useListening } from '../../src/transport/listen.ts';
import { usePools } from '../../src/upstream/call/pool.ts';
import { installAmbient } from './ambient.ts';
import { type AppWorld, type Order, Payer, Reader } from './apps.ts';
import type { Chance } from './chance.ts';
import type { Simulation } from './core.ts';
import { GatewayPlace } from './gateways.ts';
import { Network } from './network.ts';
import { Service } from './service.ts';
import { RedisGroup } from './stores.ts';

/** How much there is of what. */
export interface Size {
  readonly gateways: number;
  readonly replicas: number;
  readonly readers: number;
  readonly payers: number;
  readonly skewMs: number;
}

/** Gateways, their stores, the REST service and apps, on one simulation. */
export class World {
  readonly sim: Simulation;
  readonly network: Network;
  readonly service: Service;
  readonly redis: RedisGroup;
  readonly gateways: readonly GatewayPlace[];
  readonly readers: readonly Reader[];
  readonly payers: readonly Payer[];
  readonly demo: ClientView;
  readonly #undo: readonly (() => void)[];
  readonly #work: string;
  readonly #chance: Chance;
  #orders = 0;
  credits = 0;

  private constructor(
    parts: Pick<World, 'sim' | 'network' | 'service' | 'redis' | 'gateways' | 'readers' | 'payers' | 'demo'>,
    undo: readonly (() => void)[],
    work: string,
  ) {
    this.sim = parts.sim;
    this.network = parts.network;
    this.service = parts.service;
    this.redis = parts.redis;
    this.gateways = parts.gateways;
    this.readers = parts.readers;
    this.payers = parts.payers;
    this.demo = parts.demo;
    this.#undo = undo;
    this.#work = work;
    this.#chance = parts.sim.chance('world');
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
    const redis = new RedisGroup(sim, size.replicas);
    undo.push(
      redis.install(),
      usePools(() => service.openPool()),
      useListening(async (server, { host = '' }) => {
        network.listen(host, server);
        return host;
      }),
    );
    for (let number = 0; number < size.gateways; number += 1) {
      const skewMs = chance.between(-size.skewMs, size.skewMs);
      places.push(new GatewayPlace(sim, work, number, {}, skewMs));
    }
    const [demo] = await service.process.run(() => service.made.control.clients());
    if (demo === undefined) throw new Error('the sandbox has no client');
    const apps: AppWorld = { sim, network, token: demo.accessToken, url: anyGateway };
    const readers = Array.from(
      { length: size.readers },
      (_, index) =>
        new Reader(
          apps,
          `reader ${index}`,
          index % 3 === 2 ? 'fetch' : 'socket',
          index % 4 === 3 ? 'moneyIn' : 'events',
        ),
    );
    const payers = Array.from(
      { length: size.payers },
      (_, index) => new Payer(apps, `payer ${index}`, index % 2 === 1 ? 'fetch' : 'socket'),
    );
    return new World({ sim, network, service, redis, gateways: places, readers, payers, demo }, undo, work);
  }

  /** Starts everything, and lets the gateways register where webhooks are sent. */
  async begin(): Promise<void> {
    for (const place of this.gateways) place.start();
    await this.sim.runUntil(this.sim.elapsed + 10_000, () => this.gateways.every(({ isUp }) => isUp));
    const [first] = this.gateways;
    const { gateway } = first ?? {};
    if (gateway === undefined) throw new Error('no gateway came up');
    const { clientId, accessToken } = this.demo;
    for (const type of EVENT_TYPES) {
      const body = {
        client_id: clientId,
        url: gateway.ingress.url(clientId, type),
        token: gateway.ingress.token(clientId, type),
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
    for (const app of [...this.readers, ...this.payers]) app.start();
    await this.sim.runUntil(this.sim.elapsed + 2_000);
  }

  /** Lets credits arrive and people pay, until `isOver`. */
  traffic(creditEveryMs: number, orderEveryMs: number, isOver: () => boolean): void {
    const every = (ms: number, work: () => void): void => {
      this.sim.after(-Math.log(1 - this.#chance.number()) * ms, undefined, () => {
        if (isOver()) return;
        work();
        every(ms, work);
      });
    };
    if (creditEveryMs > 0) every(creditEveryMs, () => this.credit());
    if (orderEveryMs > 0 && this.payers.length > 0) every(orderEveryMs, () => this.order());
  }

  credit(): void {
    const account = this.#chance.pick(this.demo.accounts.filter(({ status }) => status === 'ACTIVE'));
    const amount = `${1 + this.#chance.below(999)}.00`;
    this.credits += 1;
    const { service } = this;
    service.process.run(() => {
      const order = { clabe: account.clabe, amount, payerName: 'Ordenante', concept: 'Pago' };
      service.made.control.credit(order).catch((error: unknown) => this.sim.fail(error));
    });
  }

  order(): void {
    this.#orders += 1;
    const tag = `order ${this.#orders}`;
    const mutation = this.#chance.happens(0.5) ? 'createMoneyOut' : 'createInternalTransaction';
    const isTooMuch = this.#chance.happens(0.1);
    const order: Order = {
      tag,
      mutation,
      input: {
        sourceInstrumentId: this.demo.centralizingInstrumentId,
        destinationInstrumentId:
          mutation === 'createMoneyOut'
            ? this.#chance.pick(this.demo.cardInstrumentIds)
            : this.#chance.pick(this.demo.internalInstrumentIds.slice(1)),
        amount: isTooMuch ? '999999999999.00' : '1.00',
        description: tag,
        externalReference: '1',
      },
      told: [],
      isOver: false,
    };
    this.sim.say(`${tag}: ${mutation}${isTooMuch ? ', too much' : ''}`);
    this.#chance.pick(this.payers).order(order);
  }

  /** Ends everything at once, as nobody looks any more. */
  end(): void {
    for (const app of [...this.readers, ...this.payers]) app.kill();
    for (const place of this.gateways) place.kill();
    this.service.process.kill();
    for (const put of [...this.#undo].reverse()) put();
    rmSync(this.#work, { recursive: true, force: true });
  }
}
