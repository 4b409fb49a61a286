import type { Measured } from './rounds.ts';
import { percentile, type Spread } from './stats.ts';

/** A goal of the design's performance page: `reached` is to be at most `limit`. */
export interface Goal {
  readonly work: string;
  readonly what: string;
  readonly limit: number;
  readonly reached: number;
  readonly unit: string;
}

/** What one work found out. */
export interface Section {
  readonly title: string;
  /** How it was measured, in a sentence or two. */
  readonly method: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly goals: readonly Goal[];
  /** What the chart shows of it; nothing when undefined. */
  readonly bars?: Bars;
}

export interface Bars {
  readonly title: string;
  readonly bars: readonly { readonly label: string; readonly value: number }[];
}

/** A number with three significant digits or so, as people read them. */
export function number(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString('en-US');
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value >= 1 ? value.toFixed(2) : value.toFixed(3);
}

/** The median, and between which values it lies. */
export const spread = ({ median, min, max }: Spread): string =>
  `${number(median)} (${number(min)}–${number(max)})`;

export const times = (value: number): string => `${value.toFixed(2)}×`;

/** The result of the contender with a name. */
export function named<T extends { readonly name: string }>(results: readonly T[], name: string): T {
  const found = results.find((result) => result.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}

/**
 * One contender's CPU time as a ratio to another's: the median of the ratios of each round, as a machine that is slow for
 * a while is so for both.
 */
export function cpuRatio(results: readonly Measured[], name: string, to: string): number {
  const others = named(results, to).samples;
  const ratios = named(results, name).samples.map(
    ({ cpuMs }, round) => cpuMs / (others[round]?.cpuMs ?? Number.NaN),
  );
  return percentile(ratios, 0.5);
}

export const HTTP_COLUMNS = [
  'server',
  'CPU ms / request',
  '× baseline',
  'p50 ms',
  'requests / s',
  'REST calls',
  'resident MB',
] as const;

/** The rows of an HTTP measurement, the baseline's first. */
export const httpRows = (results: readonly Measured[]): string[][] =>
  results.map((result) => [
    result.name,
    spread(result.cpuMs),
    times(cpuRatio(results, result.name, 'baseline')),
    spread(result.latencyP50Ms),
    spread(result.perSecond),
    number(result.calls.median),
    number(result.rssBytes.median / 1e6),
  ]);
