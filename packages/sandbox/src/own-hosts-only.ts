import type { MiddlewareHandler } from 'hono';
import { ApiError } from './errors.ts';
import type { Env } from './http.ts';
import { isOwnHost } from './own-hosts.ts';
import type { World } from './world.ts';

const CHANGES = ['POST', 'PUT', 'PATCH'];
const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * Keeps pages of the web from using the sandbox, whose control needs no credentials: a request must be sent to it by its own
 * name, must not come from a page of another machine, and must be JSON where it changes something. A browser asks before it
 * sends another origin JSON (CORS, preflight), and nothing here ever says yes.
 *
 * @param world whose origin holds the address that it listens on, once it does: no name of the web, so that none resolves to it.
 */
export function ownHostsOnly(world: Pick<World, 'origin'>, hosts: readonly string[]): MiddlewareHandler<Env> {
  const isOwn = (host: string | undefined): boolean => {
    const { origin } = world;
    return isOwnHost(host, URL.canParse(origin) ? [...hosts, new URL(origin).hostname] : hosts);
  };
  return async (c, next) => {
    if (!isOwn(c.req.header('host'))) {
      throw new ApiError(
        421,
        'MISDIRECTED_REQUEST',
        'The sandbox answers to names of loopback, to the address that it listens on, and to SANDBOX_HOSTS.',
      );
    }
    const origin = c.req.header('origin');
    if (origin !== undefined && !(URL.canParse(origin) && isOwn(new URL(origin).host))) {
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
