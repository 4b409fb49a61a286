import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { randomFrom } from '../helpers/random.ts';
import { endWithThisProcess } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import type { AppOptions, Death, Told } from './app.ts';
import { BINDINGS } from './bindings.ts';
import type { Compiled } from './compiled.ts';
import { type Gateways, startGateways } from './gateways.ts';
import { judge, lastIdOf, linesOf, type Verdict } from './kept.ts';
import { type Network, startNetwork } from './network.ts';
import { UNREAD_PROGRAMS } from './unread.ts';

export interface OutageOptions {
  /** Two gateways behind a Redis, or one with its own log. */
  readonly redis: boolean;
  /** How many lost connections each program goes through at least. */
  readonly disconnects: number;
  /** How often the network breaks in a row where a connection is cut: the quickest of the outages. */
  readonly cutsInARow: number;
  /** Past this time no other outage begins, whatever has been gone through. */
  readonly minutes?: number | undefined;
  readonly seed: number;
  /** A folder for the app's files. */
  readonly work: string;
  readonly compiled: Compiled;
  readonly lifetimeSeconds: number;
}

export interface OutageReport {
  /** How often each kind of outage was brought about. */
  readonly outages: Readonly<Record<string, number>>;
  /** How often a feed was seen to lose its connection, by what broke it, and how often the app itself was killed. */
  readonly causes: Readonly<Record<string, number>>;
  /** Of the program that has lost the fewest. */
  readonly disconnects: number;
  /** By program; those of an app that was killed among them. */
  readonly lostConnections: Readonly<Record<string, number>>;
  readonly appKills: number;
  readonly events: number;
  /** What each program has kept. */
  readonly kept: Readonly<Record<string, Verdict>>;
  /** From a cut network's return to the feed being live, where the app has to find out by itself, and where it is told. */
  readonly backLive: { readonly untold: readonly Back[]; readonly told: readonly Back[] };
}

/** How a feed came back. */
export interface Back {
  readonly name: string;
  readonly ms: number;
  /** What it went through on the way, and when. */
  readonly way: string;
}

/** Events that the gateways hold: fewer than come in the outage that makes a gap. */
const RETENTION = 300;
const GAP = 700;
/** Events that come while an app is in the background. */
const AWAY = 20;
/** Events that come at the end, once each program is live: one that keeps nothing may have begun behind the others. */
const LAST = 10;
/** What it takes to fill every buffer between a gateway and an app that does not read. */
const LARGE = 200;
const FILLING = 'x'.repeat(60_000);
/** Short enough to run out while nothing else happens. */
const TOKEN_TTL_SECONDS = 6;
const EVERY_MS = 10;
/**
 * What takes longer hangs: each outage is over within seconds, and no pause of a client is longer than half a minute. Beside busy
 * neighbours all of that takes ten times as long as alone.
 */
const HANGS_MS = 600_000;
/** How long the last event is waited for before one more is delivered. */
const NEXT_MS = 5_000;
const CUT = 'cut';
const TOLD = 'cut, until the app is told that it is over';

/** Whether a condition is met within a time. */
async function within(condition: () => Promise<boolean>, ms: number): Promise<boolean> {
  const end = Date.now() + ms;
  let isMet = false;
  await until(async () => {
    isMet = await condition();
    return isMet || Date.now() > end;
  });
  return isMet;
}

/** Follows by every program at once, breaks what can break, and compares what was kept with what was delivered. */
export async function goThroughOutages(options: OutageOptions): Promise<OutageReport> {
  await using gateways = await startGateways({
    redis: options.redis,
    choices: { tokenTtlSeconds: TOKEN_TTL_SECONDS },
    environment: { EVENTS_RETENTION: String(RETENTION) },
    lifetimeSeconds: options.lifetimeSeconds,
  });
  await mkdir(options.work, { recursive: true });
  const run = new Run(options, gateways);
  try {
    await run.begin();
    await run.breakThings();
    return await run.conclude();
  } finally {
    await run.stop();
  }
}

interface Follow {
  readonly name: string;
  readonly network: Network;
  readonly file: string;
  status: string;
  /** Whether it has been live since that was last waited for. */
  wasLive: boolean;
  /** How often it has lost its connection. */
  losses: number;
  /** When its network came back; undefined once it is live again. */
  restoredAt: number | undefined;
  /** What it has been since. */
  way: string[];
}

class Run {
  readonly #options: OutageOptions;
  readonly #gateways: Gateways;
  readonly #random: () => number;
  #follows: Follow[] = [];
  #app: ChildProcess | undefined;
  #delivered = 0;
  #rush = 0;
  #filling = '';
  #providing = true;
  #provider: Promise<void> | undefined;
  /** Whether a delivery is under way. */
  #delivering = false;
  /** Whether none may begin. */
  #held = false;
  readonly #outages: Record<string, number> = {};
  readonly #causes: Record<string, number> = {};
  readonly #backLive = { untold: [] as Back[], told: [] as Back[] };
  /** What came back since the last outage began. */
  #back: Back[] = [];
  #outage = 'the start';
  #appKills = 0;
  #failure: string | undefined;

  constructor(options: OutageOptions, gateways: Gateways) {
    this.#options = options;
    this.#gateways = gateways;
    this.#random = randomFrom(options.seed);
  }

  async begin(): Promise<void> {
    for (const name of [...BINDINGS, ...UNREAD_PROGRAMS]) {
      const file = join(this.#options.work, `${name}.jsonl`);
      const network = await startNetwork();
      this.#follows.push({
        name,
        network,
        file,
        status: 'offline',
        wasLive: false,
        losses: 0,
        restoredAt: undefined,
        way: [],
      });
    }
    this.#connect();
    this.#startApp();
    // The documented programs see every event; the others take part once they have seen one.
    await this.#until(() => this.#follows.every(({ name, wasLive }) => !BINDINGS.includes(name) || wasLive));
    this.#provider = this.#provide();
    await this.#allLive();
  }

  /** Leads every network to a gateway that runs. */
  #connect(): void {
    for (const { network } of this.#follows) {
      const { ports } = this.#gateways;
      network.route(ports[Math.floor(this.#random() * ports.length)]);
    }
  }

  #startApp(): void {
    const program = fileURLToPath(new URL('app.ts', import.meta.url));
    const options: AppOptions = {
      sandbox: this.#gateways.sandbox.url,
      compiled: this.#options.compiled,
      follows: this.#follows.map(({ name, network, file }) => ({ name, url: network.graphql, file })),
    };
    const app = spawn(process.execPath, [program, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    endWithThisProcess(app, this.#options.lifetimeSeconds);
    this.#app = app;
    let complaint = '';
    app.stderr?.on('data', (chunk) => {
      complaint += String(chunk);
    });
    createInterface(app.stdout).on('line', (line) => this.#hear(JSON.parse(line)));
    app.once('exit', (code) => {
      if (code !== null) this.#failure = `the app ended with ${code}: ${complaint}`;
    });
  }

  #hear({ name, status, at, cause }: { name: string; status: string; at: number; cause?: string }): void {
    const follow = this.#follows.find((one) => one.name === name);
    if (follow === undefined) return;
    if (status === 'offline' && follow.status !== 'offline') {
      follow.losses += 1;
      const known = cause ?? 'nothing said';
      this.#causes[known] = (this.#causes[known] ?? 0) + 1;
    }
    if (follow.restoredAt !== undefined) {
      follow.way.push(`${cause ?? status} ${at - follow.restoredAt}`);
    }
    if (status === 'live' && follow.restoredAt !== undefined) {
      this.#back.push({ name, ms: at - follow.restoredAt, way: follow.way.join(', ') });
      follow.restoredAt = undefined;
    }
    follow.status = status;
    follow.wasLive ||= status === 'live';
  }

  async #provide(): Promise<void> {
    while (this.#providing) {
      await until(() => !this.#held);
      this.#delivering = true;
      await this.#gateways.deliver({ id_msg: String(this.#delivered + 1), filling: this.#filling });
      this.#delivering = false;
      this.#delivered += 1;
      if (this.#rush > 0) this.#rush -= 1;
      else await pause(EVERY_MS);
    }
  }

  /** Resolves once so many more events have been delivered, as fast as they are taken. */
  async #delivers(count: number): Promise<void> {
    this.#rush = count;
    await this.#until(() => this.#rush === 0);
  }

  async #until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const end = Date.now() + HANGS_MS;
    let isSo = false;
    await until(async () => {
      isSo = await condition();
      return isSo || this.#failure !== undefined || Date.now() > end;
    });
    if (this.#failure !== undefined) throw new Error(this.#failure);
    if (isSo) return;
    const state = async ({ name, status, losses, file }: Follow) =>
      `${name}: ${status}, ${losses} losses, at ${await lastIdOf(file)}`;
    const states = (await Promise.all(this.#follows.map(state))).join('; ');
    throw new Error(`It hangs in ${this.#outage}: ${states}; ${this.#delivered} events delivered.`);
  }

  /**
   * Resolves once each is live, or has been since. On a machine with much else to do they are hardly ever live all at once:
   * each loses its connection again as soon as its token runs out.
   */
  #allLive(): Promise<void> {
    for (const follow of this.#follows) follow.wasLive = follow.status === 'live';
    return this.#until(() => this.#follows.every(({ wasLive }) => wasLive));
  }

  /** Resolves once each has kept what has been delivered by now: one that was stalled has taken itself for live all along. */
  async #allCaughtUp(): Promise<void> {
    await this.#allLive();
    const delivered = this.#delivered;
    await this.#until(async () => {
      const last = await Promise.all(this.#follows.map(({ file }) => lastIdOf(file)));
      return last.every((id) => id >= delivered);
    });
  }

  /** @returns resolves once each has lost a connection since. */
  #watchLosses(): () => Promise<void> {
    const before = this.#follows.map(({ losses }) => losses);
    return () => this.#until(() => this.#follows.every(({ losses }, index) => losses > (before[index] ?? 0)));
  }

  /** How many connections the program has lost that has lost the fewest. */
  get #fewest(): number {
    return this.#appKills + Math.min(...this.#follows.map(({ losses }) => losses));
  }

  readonly #kinds: Readonly<Record<string, () => Promise<void>>> = {
    [CUT]: async () => {
      await this.#allCaughtUp();
      const allLost = this.#watchLosses();
      await Promise.all(
        this.#follows.map(async (follow) => {
          const { network } = follow;
          await pause(this.#random() * 200);
          network.route(undefined);
          network.cut();
          await pause(this.#random() * 900);
          const { ports } = this.#gateways;
          network.route(ports[Math.floor(this.#random() * ports.length)]);
          follow.restoredAt = Date.now();
        }),
      );
      await allLost();
    },
    [TOLD]: async () => {
      await this.#allCaughtUp();
      for (const { network } of this.#follows) {
        network.route(undefined);
        network.cut();
      }
      // One whose token has just run out has lost its connection already, and loses none again.
      await this.#until(() => this.#follows.every(({ status }) => status !== 'live'));
      await pause(this.#random() * 3_000);
      this.#connect();
      for (const follow of this.#follows) follow.restoredAt = Date.now();
      this.#tell('online');
    },
    'half-open': async () => {
      const allLost = this.#watchLosses();
      for (const { network } of this.#follows) network.halfOpen();
      await allLost();
    },
    'gateway kill -9': () => this.#restart('SIGKILL'),
    'gateway drain': () => this.#restart('SIGTERM'),
    'token expiry': async () => {
      await this.#watchLosses()();
    },
    'slow reader': async () => {
      const resume = this.#follows.map(({ network }) => network.stall());
      this.#filling = FILLING;
      await this.#delivers(LARGE);
      this.#filling = '';
      for (const go of resume) go();
    },
    gap: async () => {
      for (const { network } of this.#follows) {
        network.route(undefined);
        network.cut();
      }
      await this.#delivers(GAP);
      this.#connect();
    },
    'log lost': async () => {
      // A log that is lost forgets which messages it has had: one that was shown and not yet answered would be another event.
      this.#held = true;
      await this.#until(() => !this.#delivering);
      await this.#gateways.loseLog();
      this.#held = false;
      this.#connect();
    },
    'app in the background': async () => {
      await this.#allCaughtUp();
      const inBackground = () =>
        this.#follows.some(({ name, status }) => name === 'expo' && status === 'offline');
      this.#tell('background');
      await this.#until(inBackground);
      await this.#delivers(AWAY);
      this.#tell('active');
    },
    'app kill -9': () => this.#killApp(),
    'app dies before it has saved': () => this.#killApp('before save'),
    'app dies after it has saved': () => this.#killApp('after save'),
  };

  async #restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.#gateways.restart(signal, async () => this.#connect());
    this.#connect();
  }

  async #killApp(step?: Death['step']): Promise<void> {
    const app = this.#app;
    if (app === undefined) return;
    const gone = once(app, 'exit');
    if (step === undefined) {
      app.kill('SIGKILL');
    } else {
      const { name = '' } = this.#follows[Math.floor(this.#random() * this.#follows.length)] ?? {};
      this.#tell({ name, step });
    }
    await gone;
    this.#appKills += 1;
    for (const follow of this.#follows) follow.status = 'offline';
    this.#startApp();
  }

  #tell(told: Told): void {
    this.#app?.stdin?.write(`${JSON.stringify(told)}\n`);
  }

  /** Each kind once, in random order, again and again; now and then before the feeds have recovered from the one before. */
  async breakThings(): Promise<void> {
    const { disconnects, cutsInARow, minutes = Number.POSITIVE_INFINITY } = this.#options;
    const end = Date.now() + minutes * 60_000;
    for (;;) {
      const kinds = Object.keys(this.#kinds)
        .map((kind) => ({ kind, place: this.#random() }))
        .sort((one, other) => one.place - other.place);
      for (const { kind } of kinds) {
        for (let times = kind === CUT ? cutsInARow : 1; times > 0; times -= 1) await this.#break(kind);
        if (Date.now() > end) return;
      }
      if (this.#fewest >= disconnects) return;
    }
  }

  async #break(kind: string): Promise<void> {
    this.#outage = kind;
    this.#back = [];
    for (const follow of this.#follows) Object.assign(follow, { restoredAt: undefined, way: [] });
    await this.#kinds[kind]?.();
    this.#outages[kind] = (this.#outages[kind] ?? 0) + 1;
    if (this.#random() >= 0.8) return;
    await this.#allLive();
    // What the next outage interrupts says nothing of how long it takes.
    this.#backLive[kind === TOLD ? 'told' : 'untold'].push(...this.#back);
  }

  async conclude(): Promise<OutageReport> {
    await this.#allLive();
    await this.#delivers(LAST);
    this.#providing = false;
    await this.#provider;
    const kept = new Map<string, Verdict>();
    const end = Date.now() + HANGS_MS;
    const areComplete = async () => {
      for (const { name, file } of this.#follows) kept.set(name, judge(await linesOf(file), this.#delivered));
      return [...kept.values()].every(({ complete }) => complete);
    };
    // A program that begins anew behind a gap begins at the newest event: what comes after it shows that it goes on.
    while (!(await within(areComplete, NEXT_MS)) && Date.now() < end) {
      this.#delivered += 1;
      await this.#gateways.deliver({ id_msg: String(this.#delivered), filling: '' });
    }
    return {
      outages: this.#outages,
      causes: this.#causes,
      disconnects: this.#fewest,
      lostConnections: Object.fromEntries(
        this.#follows.map(({ name, losses }) => [name, losses + this.#appKills]),
      ),
      appKills: this.#appKills,
      events: this.#delivered,
      kept: Object.fromEntries(kept),
      backLive: this.#backLive,
    };
  }

  async stop(): Promise<void> {
    this.#providing = false;
    this.#app?.removeAllListeners('exit');
    this.#app?.kill('SIGKILL');
    await Promise.all(this.#follows.map(({ network }) => network[Symbol.asyncDispose]()));
  }
}
