import { dataOf, expectData, expectText } from './answers.ts';
import type { Contender, ContenderName } from './contenders.ts';
import { client, type Work } from './documents.ts';
import { type Answer, load } from './load.ts';
import { percentile, type Spread, spreadOf } from './stats.ts';
import type { Stub } from './stub.ts';

/** How a piece of work is put to its contenders. */
export interface Trial {
  /** What is asked: always the same, or made anew for each request. */
  readonly work: Work | (() => Work);
  /** What each answer holds, where no two answers are the same. Without it, `data` must be the first contender's. */
  readonly expects?: string;
  /** The contenders who can do it; all, when undefined. */
  readonly only?: readonly ContenderName[];
  /** Used in turn. The contenders have accepted each beforehand. */
  readonly credentials: readonly string[];
  readonly connections: number;
  readonly rounds: number;
  /** About how long one contender's part of a round takes, in milliseconds. */
  readonly roundMs: number;
  /** Requests that each contender is sent before anything is measured, where what fills three rounds are too few for V8 to compile what is hot. */
  readonly warmUp?: number;
  /** Whether the load generator waits for answers without sleeping (awake.ts). */
  readonly awake?: boolean;
}

/** What one contender needed in one round. Times are milliseconds. */
interface Sample {
  readonly cpuMs: number;
  readonly latencyP50Ms: number;
  readonly perSecond: number;
  readonly calls: number;
  /** Resident memory of the server process when the round was over, in bytes. */
  readonly rssBytes: number;
}

/** What one contender needed. Times are milliseconds. */
export interface Measured {
  readonly name: ContenderName;
  /** In the order of the rounds. */
  readonly samples: readonly Sample[];
  /** CPU time of the server process for one request. */
  readonly cpuMs: Spread;
  readonly latencyP50Ms: Spread;
  readonly perSecond: Spread;
  /** REST calls of one request. */
  readonly calls: Spread;
  /** Resident memory of the server process, in bytes. */
  readonly rssBytes: Spread;
  /** Requests measured. */
  readonly requests: number;
}

/** A credential that was accepted longer ago is shown again before a round: the gateway believes one for a minute. */
const ACCEPTED_FOR_MS = 40_000;
const WARM_UP = { requests: 400, atLeast: 60, atMost: 20_000 };

interface Entrant {
  readonly contender: Contender;
  readonly check: (answer: Answer) => void;
  readonly requests: number;
  readonly samples: Sample[];
  acceptedAt: number;
  sent: number;
}

/** Compares everybody's answers, then measures them in rounds in which each has its turn. */
export async function measure(
  trial: Trial,
  contenders: readonly Contender[],
  stub: Stub,
): Promise<readonly Measured[]> {
  const [results = []] = await measureTogether([trial], contenders, stub);
  return results;
}

/** As {@link measure}, of several works that the same processes do in turn, round by round. As many rounds as the first has. */
export async function measureTogether(
  trials: readonly Trial[],
  contenders: readonly Contender[],
  stub: Stub,
): Promise<readonly (readonly Measured[])[]> {
  const works: { trial: Trial; entrants: Entrant[] }[] = [];
  for (const trial of trials) {
    const able = contenders.filter(({ name }) => trial.only?.includes(name) ?? true);
    const expected = trial.expects === undefined ? await referenceData(trial, able) : undefined;
    const entrants: Entrant[] = [];
    for (const contender of able) entrants.push(await enter(trial, contender, expected));
    works.push({ trial, entrants });
  }
  const rounds = trials[0]?.rounds ?? 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const { trial, entrants } of works) {
      for (const entrant of entrants) await takeTurn(trial, entrant, stub);
    }
  }
  return works.map(({ entrants }) =>
    entrants.map(({ contender, samples, requests }) => measured(contender.name, samples, requests * rounds)),
  );
}

/** Takes the rounds of several measurements of the same contenders for those of one. */
export const pooled = (parts: readonly (readonly Measured[])[]): readonly Measured[] =>
  (parts[0] ?? []).map(({ name }, index) => {
    const own = parts.flatMap((part) => part[index] ?? []);
    const samples = own.flatMap((part) => part.samples);
    const requests = own.reduce((sum, part) => sum + part.requests, 0);
    return measured(name, samples, requests);
  });

const measured = (name: ContenderName, samples: readonly Sample[], requests: number): Measured => ({
  name,
  samples,
  cpuMs: spreadOf(samples.map((sample) => sample.cpuMs)),
  latencyP50Ms: spreadOf(samples.map((sample) => sample.latencyP50Ms)),
  perSecond: spreadOf(samples.map((sample) => sample.perSecond)),
  calls: spreadOf(samples.map((sample) => sample.calls)),
  rssBytes: spreadOf(samples.map((sample) => sample.rssBytes)),
  requests,
});

const credentialOf = (trial: Trial, index: number): string => {
  const credential = trial.credentials[index % trial.credentials.length];
  if (credential === undefined) throw new Error('a trial has at least one credential');
  return credential;
};

const workOf = ({ work }: Trial): Work => (typeof work === 'function' ? work() : work);

/** The data of the first contender, which is the baseline. */
async function referenceData(trial: Trial, [baseline]: readonly Contender[]): Promise<string> {
  if (baseline === undefined) throw new Error('a trial has at least one contender');
  let data = '';
  await load({
    url: baseline.server.url,
    requests: 1,
    connections: 1,
    shot: () => baseline.shot(workOf(trial), credentialOf(trial, 0)),
    check: (answer) => {
      data = dataOf(answer);
    },
  });
  return data;
}

/** Compares, warms up until V8 has compiled what is hot, and finds out how many requests fill a round. */
async function enter(trial: Trial, contender: Contender, expected: string | undefined): Promise<Entrant> {
  const check =
    expected === undefined
      ? expectText(contender.name, trial.expects ?? '')
      : expectData(contender.name, expected);
  const send = (requests: number, connections: number) =>
    load({
      url: contender.server.url,
      requests,
      connections,
      shot: (index) => contender.shot(workOf(trial), credentialOf(trial, index)),
      check,
      awake: trial.awake,
    });
  await send(3, 1);
  if (trial.warmUp !== undefined) await send(trial.warmUp, trial.connections);
  let requests = WARM_UP.requests;
  for (let turn = 0; turn < 3; turn += 1) {
    const { wallMs } = await send(requests, trial.connections);
    const fitting = Math.round((trial.roundMs / wallMs) * requests);
    requests = Math.min(WARM_UP.atMost, Math.max(WARM_UP.atLeast, fitting));
  }
  return { contender, check, requests, samples: [], acceptedAt: Number.NEGATIVE_INFINITY, sent: 0 };
}

async function takeTurn(trial: Trial, entrant: Entrant, stub: Stub): Promise<void> {
  const { contender, requests } = entrant;
  const { server } = contender;
  if (contender.accepts && performance.now() - entrant.acceptedAt > ACCEPTED_FOR_MS) {
    entrant.acceptedAt = performance.now();
    await accept(trial, contender);
  }
  const callsBefore = await stub.calls();
  const cpuBefore = server.cpuMs();
  const first = entrant.sent;
  const { wallMs, latenciesMs } = await load({
    url: server.url,
    requests,
    connections: trial.connections,
    shot: (index) => contender.shot(workOf(trial), credentialOf(trial, first + index)),
    check: entrant.check,
    awake: trial.awake,
  });
  entrant.sent += requests;
  entrant.samples.push({
    cpuMs: (server.cpuMs() - cpuBefore) / requests,
    latencyP50Ms: percentile(latenciesMs, 0.5),
    perSecond: (requests / wallMs) * 1_000,
    calls: ((await stub.calls()) - callsBefore) / requests,
    rssBytes: server.rssBytes(),
  });
}

async function accept(trial: Trial, { server, shot }: Contender): Promise<void> {
  await load({
    url: server.url,
    requests: trial.credentials.length,
    connections: 16,
    shot: (index) => shot(client, credentialOf(trial, index)),
    check: dataOf,
  });
}
