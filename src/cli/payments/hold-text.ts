import type { Hold } from '../../money/record.ts';

/** Says why, and since when, payments are held. */
export function holdText({ why, since, missing }: Hold): string {
  const held = `Payments have been held since ${new Date(since).toISOString()}`;
  if (why !== 'put-back') return `${held}: an operator has stopped them.`;
  return `${held}: their record was put back, to a copy that may be far older than that. Missing from it: ${missing === 0 ? 'an unknown number' : `${missing} or more`}.`;
}
