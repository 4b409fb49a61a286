import type { PageRule } from './choices.ts';
import { dataError } from './errors.ts';
import type { Ctx } from './http.ts';
import type { Sliceable } from './things.ts';

export interface Page<T> {
  page: number;
  size: number;
  total: number;
  items: T[];
}

/** Cuts the page that the query asks for. @throws ApiError DATA_ERROR unless the numbers are integers >= 1. */
export function cutPage<T>(c: Ctx, all: Sliceable<T>, rule: PageRule): Page<T> {
  const page = wholeNumber(c, 'page') ?? 1;
  const asked = rule.sizeParameter === null ? undefined : wholeNumber(c, rule.sizeParameter);
  const size = Math.min(asked ?? rule.size, rule.max);
  const start = (page - 1) * size;
  return { page, size, total: all.length, items: all.slice(start, start + size) };
}

function wholeNumber(c: Ctx, name: string): number | undefined {
  const text = c.req.query(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text) || Number(text) < 1) throw dataError(`${name} must be an integer >= 1.`);
  return Number(text);
}
