import type { MiddlewareHandler } from 'hono';
import { type Env, routeTemplate } from './http.ts';

/** How often each route of /v1 was called, whatever became of the call. */
export class RequestCounts {
  readonly #counts = new Map<string, number>();

  add(key: string): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }

  clear(): void {
    this.#counts.clear();
  }

  /** `{ "GET /v1/banks": 3 }` */
  byRoute(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  total(): number {
    let total = 0;
    for (const count of this.#counts.values()) total += count;
    return total;
  }
}

export function countRequests(counts: RequestCounts): MiddlewareHandler<Env> {
  return (c, next) => {
    counts.add(`${c.req.method} ${routeTemplate(c) ?? 'unknown route'}`);
    return next();
  };
}
