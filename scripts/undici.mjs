// What `dist` uses of undici. Its own index reads and runs all that it has at each start: mocks, caches, cookies, proxies and
// WebSockets are half of it. A name that is missing here fails the build, and the tests of `dist` hold what it does.
import api from 'undici/lib/api/index.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import { FormData } from 'undici/lib/web/fetch/formdata.js';
import { Headers } from 'undici/lib/web/fetch/headers.js';
import { fetch } from 'undici/lib/web/fetch/index.js';
import { Request } from 'undici/lib/web/fetch/request.js';
import { Response } from 'undici/lib/web/fetch/response.js';
import { CloseEvent, ErrorEvent, MessageEvent } from 'undici/lib/web/websocket/events.js';

// As undici's index does.
Object.assign(Dispatcher.prototype, api);

export { Agent, Pool };

/** Has code that uses `fetch` and its like use those of this undici, not those of Node, which are a second one. */
export function install() {
  const events = { CloseEvent, ErrorEvent, MessageEvent };
  Object.assign(globalThis, { fetch, FormData, Headers, Request, Response, ...events });
}
