import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { MEMORY_FOLDER } from '../helpers/memory-folder.ts';
import { Broken, Simulation } from './core.ts';
import { crowd } from './crowd.ts';
import { Nemesis } from './faults.ts';
import { checkEnd, checkReaders, watchOver } from './oracles.ts';
import { type Only, planOf, type Traffic } from './plan.ts';
import { World } from './world.ts';

export interface RunOptions {
  readonly seed: number;
  /** Simulated hours during which things go wrong. */
  readonly hours: number;
  readonly only: Only | undefined;
  readonly traffic?: Traffic;
  /** No more than so many faults strike. */
  readonly faults?: number;
  readonly isLong?: boolean;
}

export interface Report {
  readonly seed: number;
  readonly digest: string;
  /** What is broken; empty where everything holds. */
  readonly problems: readonly string[];
  readonly lines: readonly string[];
  readonly plan: string;
  readonly struck: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly events: number;
  readonly deliveries: number;
  readonly payments: number;
  readonly connections: number;
  /** Of these, WebSockets and streams of events. */
  readonly streams: number;
  readonly cpuMs: number;
  /** All simulated time, with what follows the last fault, in hours. */
  readonly simulatedHours: number;
}

/** How long nothing goes wrong before everything has to be well, in milliseconds: a minute, and what a client waits for at most. */
const CALM_MS = 100_000;
/** How long before that each account is credited once more, so that a reader who has fallen silent has something to miss, in milliseconds. */
const LAST_CREDITS_MS = 30_000;
/** How long after these credits nobody may still be without one, and how long each takes until it is in the log, in milliseconds. */
const LATE_MS = 5_000;
const GIVEN_MS = 2_000;
/** How long the last message of the service takes to everybody, in milliseconds. */
const LAST_WORD_MS = 5_000;
/** How long a crowd and what it asked for take, in milliseconds. */
const CROWD_MS = 30_000;

let warm: Promise<unknown> | undefined;

/**
 * What the gateway's modules keep, such as parsed documents, makes the first run of a process another than those after it: so one run
 * goes before, which nobody looks at.
 */
const warmUp = (): Promise<unknown> => {
  warm ??= runOnce({ seed: 0, hours: 0.01, only: undefined }).then(() =>
    runOnce({ seed: 1, hours: 0.01, only: undefined }),
  );
  return warm;
};

/** Runs one seed: things go wrong for as long as asked, then no more; the rules are watched over all the time. */
export async function run(options: RunOptions): Promise<Report> {
  await warmUp();
  return runOnce(options);
}

async function runOnce(options: RunOptions): Promise<Report> {
  const before = process.cpuUsage();
  const sim = new Simulation(`${options.seed}`, options.isLong);
  const plan = planOf(sim, options.only, options.traffic ?? 'dense');
  const world = await World.build(sim, plan.size, mkdtempSync(join(MEMORY_FOLDER, 'pasarela-simulation-')));
  const onRejection = (error: unknown): void => sim.fail(error);
  process.on('unhandledRejection', onRejection);
  process.on('uncaughtException', onRejection);
  const nemesis = new Nemesis(sim, options.faults ?? Number.POSITIVE_INFINITY);
  const problems: string[] = [];
  let lines: readonly string[] = [];
  let digest = '';
  try {
    watchOver(world);
    await world.begin();
    const end = sim.elapsed + options.hours * 3_600_000;
    let isOver = false;
    world.traffic(plan.creditEveryMs, plan.orderEveryMs, () => isOver);
    plan.begin(world, nemesis);
    await sim.runUntil(end);
    isOver = true;
    nemesis.stop();
    plan.calm(world);
    sim.say('Nothing goes wrong any more.');
    await sim.runUntil(sim.elapsed + CALM_MS - LAST_CREDITS_MS);
    problems.push(...checkReaders(world, 15_000));
    world.creditAll();
    await sim.runUntil(sim.elapsed + LATE_MS);
    problems.push(...checkReaders(world, LATE_MS - GIVEN_MS));
    await sim.runUntil(sim.elapsed + LAST_CREDITS_MS - LATE_MS);
    // What has happened by now is what everybody is to know.
    world.service.standStill();
    await sim.runUntil(sim.elapsed + LAST_WORD_MS);
    if (plan.size.environment['LAYERS_OFF'] === undefined) {
      crowd(world);
      await sim.runUntil(sim.elapsed + CROWD_MS);
    }
    if (sim.failure === undefined) problems.push(...(await checkEnd(world)));
    if (sim.failure !== undefined) problems.unshift(wordsOf(sim.failure));
    lines = [...sim.lines];
    digest = sim.digest();
  } finally {
    await world.end();
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onRejection);
  }
  const { user, system } = process.cpuUsage(before);
  return {
    seed: options.seed,
    digest,
    problems,
    lines,
    plan: plan.words,
    struck: nemesis.struck,
    faults: nemesis.counts,
    steps: sim.steps,
    events: world.service.acknowledged.length,
    deliveries: world.readers.reduce((sum, { kept }) => sum + kept.filter((item) => 'id' in item).length, 0),
    payments: world.orders.length,
    connections: world.network.connections,
    streams: world.network.streams,
    cpuMs: (user + system) / 1000,
    simulatedHours: sim.elapsed / 3_600_000,
  };
}

const wordsOf = (failure: unknown): string =>
  failure instanceof Broken
    ? failure.message
    : failure instanceof Error
      ? (failure.stack ?? failure.message)
      : String(failure);
