/** The middle of some measurements, and how far they lie apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** The value below which a share of the values lies (nearest rank). */
export function percentile(values: Iterable<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new Error('nothing was measured');
  return value;
}

export const spreadOf = (values: readonly number[]): Spread => ({
  median: percentile(values, 0.5),
  min: Math.min(...values),
  max: Math.max(...values),
});
