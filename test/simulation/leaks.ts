import type { World } from './world.ts';

/** How long after all apps have ended nothing of them is left in a gateway, in milliseconds: deadlines of operations, and pings of sockets. */
const GONE_MS = 60_000;

/** What a gateway counts of those who are there now. With nobody there each is 0. */
const OF_SOMEBODY =
  /^pasarela_(?:open_streams|events_subscribers|events_waiting|operations_waiting|upstream_calls_waiting|polls_waiting|payments_in_flight|payments_unwritten)(?:\{[^}]*\})? [^0].*$/gm;

/** How long a connection that ends just now takes to be made again, and an answer to come, in milliseconds. */
const LIVE_WITHIN_MS = 5_000;

/** Feeds that do not say that they are live, or say that something is missing, though all is well. */
export async function problemsOfFeeds({ sim, readers }: World): Promise<readonly string[]> {
  const isLive = ({ feed }: (typeof readers)[number]): boolean =>
    feed?.status === 'live' && feed.missing === 0 && feed.problem === undefined;
  await sim.runUntil(sim.elapsed + LIVE_WITHIN_MS, () => readers.every(isLive));
  return readers
    .filter((reader) => !isLive(reader))
    .map(
      ({ name, feed }) =>
        `the feed of ${name} is ${feed?.status}, says that ${feed?.missing} events are missing, and has the problem ${feed?.problem}`,
    );
}

/** What gateways still count of apps that have all gone. */
export async function problemsOfLeaks(world: World): Promise<readonly string[]> {
  const { sim, network, service, gateways } = world;
  for (const app of world.apps) app.kill();
  network.giveUpForgotten();
  await sim.runUntil(sim.elapsed + GONE_MS);
  const problems: string[] = [];
  for (const { url, name } of gateways) {
    let text: string | undefined;
    service.process.run(() =>
      network.fetch(`${url}/metrics`).then(
        async (response) => {
          text = await response.text();
        },
        (error: unknown) => {
          text = String(error);
        },
      ),
    );
    await sim.runUntil(sim.elapsed + LIVE_WITHIN_MS, () => text !== undefined);
    // A gateway that does not answer, or answers with something else, may hold anything.
    if (!text?.includes('# TYPE pasarela_open_streams gauge'))
      problems.push(`${name} does not say what it counts: ${text?.slice(0, 200)}`);
    for (const [left] of text?.matchAll(OF_SOMEBODY) ?? [])
      problems.push(`${name} counts ${left}, a minute after everybody has left`);
  }
  return problems;
}
