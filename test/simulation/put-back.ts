import { isBehind, type Mark } from '../../src/money/mark.ts';
import { Broken, type Process } from './core.ts';
import type { GatewayPlace } from './gateways.ts';
import { countedIn, isHeldIn, recordedSentAt } from './records.ts';
import type { World } from './world.ts';

/** How long after the record was put back a gateway that reaches it has compared what it knows, in ms. */
const COMPARED_MS = 500;

/** The record of payments as it was put back, and what gateways know that it no longer has. */
export class PutBack {
  readonly #world: World;
  /** By gateway: what it knew to be recorded as the record was put back to less, and has to be held by. */
  readonly #known = new Map<string, Mark & { readonly since: number }>();
  #at: number | undefined;
  #isCompared = false;

  constructor(world: World) {
    this.#world = world;
  }

  /** When the record was put back, in ms since the beginning; undefined where no gateway can tell, and once payments go on. */
  get at(): number | undefined {
    return this.#at;
  }

  /** The record has just been put back. */
  begin(): void {
    const { sim, demo, gateways } = this.#world;
    this.#known.clear();
    for (const place of gateways)
      if (this.#isAhead(place, demo.clientId))
        this.#known.set(place.name, { ...place.knownOf(demo.clientId), since: sim.now });
    this.#isCompared = false;
    this.#at = this.#isHeld() || this.#knowing().length > 0 ? sim.elapsed : undefined;
  }

  /** An operator lets payments go on. */
  end(): void {
    this.#at = undefined;
    this.#known.clear();
  }

  /** Looks whether a gateway can tell: none can where others have paid as often before one that knew more could compare. */
  look(): void {
    const { sim, redis } = this.#world;
    if (this.#at === undefined || this.#isCompared || this.#isHeld()) return;
    const knowing = this.#knowing();
    if (knowing.length === 0) this.#at = undefined;
    else if (sim.elapsed - this.#at >= COMPARED_MS)
      this.#isCompared = knowing.some(({ name, isUp }) => isUp && !redis.isTroubled(name));
  }

  /** A gateway that knows of more payments than the record has when it is to note another sends none. */
  check({ name }: Process, body: string): void {
    const known = this.#known.get(name);
    if (known === undefined) return;
    const { sim, redis, demo } = this.#world;
    const { keyspace } = redis.primary;
    const sentAt = recordedSentAt(keyspace, body) ?? Number.NEGATIVE_INFINITY;
    // This payment is among those that are counted by now.
    if (sentAt >= known.since && !isBehind(known, countedIn(keyspace, demo.clientId)))
      sim.fail(
        new Broken(
          `${name} sends ${body}, though it knew of ${known.sent} payments before, and the record of fewer`,
        ),
      );
  }

  #isHeld(): boolean {
    const { redis, clients } = this.#world;
    return clients.some(({ clientId }) => isHeldIn(redis.primary.keyspace, clientId));
  }

  /** The gateways that know of more than the record has. */
  #knowing(): readonly GatewayPlace[] {
    const { clients, gateways } = this.#world;
    return gateways.filter((place) => clients.some(({ clientId }) => this.#isAhead(place, clientId)));
  }

  #isAhead(place: GatewayPlace, clientId: string): boolean {
    return isBehind(countedIn(this.#world.redis.primary.keyspace, clientId), place.knownOf(clientId));
  }
}
