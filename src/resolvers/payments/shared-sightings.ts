import { Lru } from '../../common/lru.ts';
import { type SightedLog, Sightings } from './sightings.ts';

/** Clients whose sightings are found again. */
const MOST_CLIENTS = 1_000;

/**
 * Returns what finds a client's sightings: one for all credentials under which payments of the client are settled, since the log is read
 * under none of them. They are let go of with the last payment that is looked for by them.
 */
export function shareSightings(log: SightedLog): (clientId: string) => Sightings {
  const held = new Lru<WeakRef<Sightings>>(MOST_CLIENTS);
  return (clientId) => {
    const known = held.get(clientId)?.deref();
    if (known !== undefined) return known;
    const sightings = new Sightings(log, clientId);
    held.set(clientId, new WeakRef(sightings));
    return sightings;
  };
}
