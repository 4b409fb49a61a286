import { Broken, Process } from './core.ts';
import { ask, type Told } from './raw.ts';
import type { World } from './world.ts';

/** How long the service takes for each answer meanwhile, in milliseconds. */
const SLOW_MS = 1_500;
/** How many reads one caller asks for at once: several times as many as may be under way for it. */
const OPERATIONS = 4;
const FIELDS = 25;
/** A read of its own, with what goes before it: two answers of the service. */
const PATIENCE_MS = 2.5 * SLOW_MS;

/**
 * One caller asks for more than its share, and while all of that waits another asks for the last of it. Whoever has nothing under way
 * is answered as if the other were not there: also where both wait for the same read.
 */
export function crowd(world: World): void {
  const { sim, network, service } = world;
  const [first, other] = world.callers.whole.filter(({ client }) => client === world.demo);
  if (first === undefined || other === undefined) return;
  const chance = sim.chance('crowd');
  const [{ url } = { url: '' }] = world.gateways;
  const apps = { sim, network, url: () => url, pace: 1, payingPace: 1 };
  const process = new Process(sim, 'a crowd');
  const asking = (ids: readonly string[], caller: typeof first): Promise<Told> => {
    const fields = ids.map((id, index) => `t${index}: transaction(id: "${id}") { id }`);
    const how = { way: 'fast', signal: new AbortController().signal } as const;
    return ask(apps, url, caller.token(), { query: `{ ${fields.join(' ')} }` }, how);
  };
  const broken = (what: string): void => sim.fail(new Broken(`${other.name} ${what}, behind ${first.name}`));
  const refused = (error: unknown): void => broken(`is not answered: ${error}`);
  const start = (): void => {
    service.slownessMs = SLOW_MS;
    const ids = Array.from({ length: OPERATIONS * FIELDS }, () => chance.uuid());
    for (let at = 0; at < OPERATIONS; at += 1)
      asking(ids.slice(at * FIELDS, (at + 1) * FIELDS), first).catch(() => undefined);
    sim.after(200, process, () => {
      const late = sim.after(PATIENCE_MS, process, () => broken(`waits for more than ${PATIENCE_MS} ms`));
      asking(ids.slice(-1), other).then((told) => {
        late.cancel();
        // Nobody has a transaction of this id.
        if (told.data?.['t0'] !== null || told.errors !== undefined)
          broken(`is told ${JSON.stringify(told).slice(0, 300)}`);
      }, refused);
    });
    sim.after(20_000, undefined, () => {
      service.slownessMs = 0;
    });
  };
  // Whoever asks for the first time is identified first, and the gateway has its token.
  process.run(() =>
    Promise.all([asking([chance.uuid()], first), asking([chance.uuid()], other)]).then(
      () => void sim.after(100, process, start),
      refused,
    ),
  );
}
