import type { MiddlewareHandler } from 'hono';
import { ApiError } from './errors.ts';
import type { Env } from './http.ts';
import { isOwnHost } from './own-hosts.ts';

const CHANGES = ['POST', 'PUT', 'PATCH'];
const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * Keeps pages of the web from using the sandbox, whose control needs no credentials: a request must be sent to it by its own
 * name, must not come from a page of another machine, and must be JSON where it changes something. A browser asks before it
 * sends another origin JSON (CORS, preflight), and nothing here ever says yes.
 */
export function ownHostsOnly(hosts: readonly string[]): MiddlewareHandler<Env> {
  return async (c, next) => {
    if (!isOwnHost(c.req.header('host'), hosts)) {
      throw new ApiError(
        421,
        'MISDIRECTED_REQUEST',
        'The sandbox answers to names of loopback, and to SANDBOX_HOSTS.',
      );
    }
    const origin = c.req.header('origin');
    if (origin !== undefined && !(URL.canParse(origin) && isOwnHost(new URL(origin).host, hosts))) {
      throw new ApiError(403, 'PERMISSION_DENIED', 'Pages of other machines do not use the sandbox.');
    }
    if (CHANGES.includes(c.req.method) && !JSON_TYPE.test(c.req.header('content-type') ?? '')) {
      throw new ApiError(
        415,
        'UNSUPPORTED_MEDIA_TYPE',
        'What changes something is sent as content-type: application/json.',
      );
    }
    await next();
  };
}
