import { execFile, fork } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startPrometheus } from '../../helpers/prometheus.ts';
import { endWithThisProcess } from '../../helpers/redis.ts';
import type { Look } from './look.ts';
import type { Stage } from './stage.ts';

/** Rules wait this many times shorter than in production, and gateways are scraped each second instead of every 15 s. */
const FASTER = 15;
const LOOK = fileURLToPath(new URL('look.ts', import.meta.url));
/** How long after the beginning of a step the doctor is asked, in milliseconds: in the middle of its trouble. */
const DOCTOR_AFTER_MS = 3_000;

/** `/readyz` of one gateway in a step. */
interface Readiness {
  readonly name: string;
  readonly longestMs: number;
  /** What it said first, and each other thing that it said from a second of the step on. */
  readonly said: readonly Said[];
}

interface Said {
  readonly second: number;
  readonly what: string;
}

/** What those who watch have said in a step. */
export interface Watched {
  readonly readiness: readonly Readiness[];
  /** By how much a timer of the process that asks was late at most, in milliseconds: so long it got no processor itself. */
  readonly lateMs: number;
  /** Alerts that were seen firing first. */
  readonly alerts: readonly Said[];
  /** Those that fired already when the step began. */
  readonly alertsBefore: readonly string[];
}

export interface Watch {
  /** What was said since it was asked last. */
  take(): Watched;
  /** What the doctor finds wrong in a moment, by the names of its checks, and the second at which that was said. */
  askDoctor(): Promise<Said>;
  stop(): void;
}

/** Watches the night as an operator does: `/readyz`, Prometheus with the rules of the project, and the doctor. */
export async function startWatch(stage: Stage, lifetimeSeconds: number): Promise<Watch> {
  const looks = watchReadiness(stage, lifetimeSeconds);
  const alerts = await watchAlerts(stage, lifetimeSeconds);
  return {
    take: () => ({ ...looks.take(), ...alerts.take() }),
    askDoctor: () => askDoctor(stage),
    stop() {
      looks.stop();
      alerts.stop();
    },
  };
}

const secondsSince = (since: number): number => Math.round((performance.now() - since) / 1_000);

function watchReadiness({ members }: Stage, lifetimeSeconds: number) {
  const child = fork(
    LOOK,
    members.map(({ url }) => url),
  );
  endWithThisProcess(child, lifetimeSeconds);
  const seen = new Map(members.map(({ url, name }) => [url, { name, longestMs: 0, said: [] as Said[] }]));
  let since = performance.now();
  let latest = 0;
  // look.ts sends nothing else.
  child.on('message', (message) => {
    const { url, milliseconds = 0, state, lateMs } = message as Look;
    const one = seen.get(url);
    if (one === undefined) return;
    latest = Math.max(latest, lateMs);
    one.longestMs = Math.max(one.longestMs, milliseconds);
    if (one.said.at(-1)?.what !== state) one.said.push({ second: secondsSince(since), what: state });
  });
  return {
    take() {
      const readiness = [...seen.values()].map((one) => ({ ...one }));
      for (const one of seen.values()) {
        one.longestMs = 0;
        one.said = one.said.slice(-1).map(({ what }) => ({ second: 0, what }));
      }
      const lateMs = latest;
      [since, latest] = [performance.now(), 0];
      return { readiness, lateMs };
    },
    stop: () => void child.kill(),
  };
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** `2m` as `8s`. */
function shortened(time: string): string {
  const [, count = '0', unit = 's'] = /^(\d+)([smhd])$/.exec(time) ?? [];
  return `${Math.ceil((Number(count) * (UNITS[unit] ?? 1)) / FASTER)}s`;
}

async function watchAlerts({ folder, members }: Stage, lifetimeSeconds: number) {
  const urls = members.map(({ url }) => url);
  const prometheus = await startPrometheus(folder, urls, shortened, lifetimeSeconds);
  let since = performance.now();
  let before: readonly string[] = [];
  let now: readonly string[] = [];
  let fired: Said[] = [];
  let isRunning = true;
  const poll = async (): Promise<void> => {
    while (isRunning) {
      now = (await prometheus.firing()).map((name) => name.replace('Pasarela', ''));
      for (const what of now) {
        if (!before.includes(what) && !fired.some((one) => one.what === what))
          fired.push({ second: secondsSince(since), what });
      }
      await pause(1_000);
    }
  };
  void poll();
  return {
    take() {
      const taken = { alerts: fired, alertsBefore: before };
      [since, before, fired] = [performance.now(), [...new Set(now)], []];
      return taken;
    },
    stop() {
      isRunning = false;
      prometheus.stop();
    },
  };
}

async function askDoctor({ environment, members: [, { url, dataDir }] }: Stage): Promise<Said> {
  const since = performance.now();
  await pause(DOCTOR_AFTER_MS);
  const { PATH = '', HOME = '' } = process.env;
  const own = { PATH, HOME, ...environment, PORT: new URL(url).port, DATA_DIR: dataDir };
  const stdout = await new Promise<string>((resolve) => {
    // It ends with 1 where it finds something wrong.
    const options = { env: own, timeout: 300_000 };
    execFile(process.execPath, ['src/cli/pasarela.ts', 'doctor', '--json'], options, (_error, text) =>
      resolve(text),
    );
  });
  const second = secondsSince(since);
  if (stdout === '') return { second, what: 'no answer' };
  const { findings }: { findings: { check: string; status: string }[] } = JSON.parse(stdout);
  const failed = findings.filter(({ status }) => status === 'failure').map(({ check }) => check);
  return { second, what: [...new Set(failed)].join(', ') || 'nothing' };
}
