import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../common/logger.ts';
import { asksForPage } from '../common/page-request.ts';
import { createRareLines } from '../common/rare-lines.ts';
import { isAnswerable } from '../common/request-line.ts';

const WEBHOOKS_PATH = '/webhooks/';
/** An upgrade that Node has seen comes to no router. */
const LOST_UPGRADE =
  'This WebSocket came without its header Upgrade, or Connection. A proxy on the way takes both off unless it is told to pass them on, over HTTP/1.1.';
const GRAPHQL_METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST'];

type Handler = (request: IncomingMessage, response: ServerResponse, path: string) => Promise<unknown>;

/** Answers a request. */
export type Route = (request: IncomingMessage, response: ServerResponse) => void;

/** The handlers of the paths. */
export interface Routes {
  /** Such as `/graphql`. */
  readonly graphPath: string;
  readonly graph: Handler;
  /** Handles deliveries of the provider. */
  readonly webhook: Handler;
  /** The page at `/graphql` (GraphiQL). It answers its own paths alone. */
  readonly page: { handle(request: IncomingMessage, response: ServerResponse, path: string): boolean };
  readonly showsPage: boolean;
  /** The answer of `/readyz`. */
  readiness(): Promise<{ readonly status: number; readonly body: object }>;
  /** What `/metrics` shows. */
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
  readonly logger: Logger;
}

/** Hands each request to the handler of its path. The client sees nothing of an unexpected failure but a status of 500. */
export function createRouter(routes: Routes): Route {
  const { graphPath, page, logger } = routes;
  const isDue = createRareLines();

  const guard = (response: ServerResponse, work: Promise<unknown>): void => {
    work.catch((error: unknown) => {
      logger.error({ err: error }, 'A request failed unexpectedly');
      if (response.headersSent) response.destroy();
      else
        send(response, 500, { errors: [{ message: 'Unexpected error', extensions: { code: 'INTERNAL' } }] });
    });
  };

  const ready = async (response: ServerResponse): Promise<void> => {
    const { status, body } = await routes.readiness();
    send(response, status, body);
  };

  const showMetrics = async (response: ServerResponse): Promise<void> => {
    const text = await routes.metrics.metrics();
    const { contentType } = routes.metrics;
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(text);
  };

  return (request, response) => {
    if (!isAnswerable(request)) {
      send(response, 400, { error: 'The address of this request, or its Host, is malformed.' });
      return;
    }
    const [path = '/'] = (request.url ?? '/').split('?');
    if (page.handle(request, response, path)) return;
    if (path === graphPath) {
      if (!GRAPHQL_METHODS.includes(request.method ?? '')) {
        response.setHeader('allow', GRAPHQL_METHODS.join(', '));
        send(response, 405, { error: 'The graph is asked with GET or POST.' });
        return;
      }
      if (request.headers['sec-websocket-key'] !== undefined) {
        if (isDue('upgrade'))
          logger.warn(
            {},
            'a WebSocket came without its header Upgrade, which a proxy on the way has taken off',
          );
        send(response, 400, { error: LOST_UPGRADE });
        return;
      }
      guard(response, routes.graph(request, response, path));
    } else if (path.startsWith(WEBHOOKS_PATH)) {
      guard(response, routes.webhook(request, response, path));
    } else if (path === '/healthz') {
      send(response, 200, { status: 'alive' });
    } else if (path === '/readyz') {
      guard(response, ready(response));
    } else if (path === '/metrics') {
      guard(response, showMetrics(response));
    } else if (path === '/' && routes.showsPage && (request.method === 'GET' || request.method === 'HEAD')) {
      // Programs that wait for a start ask here, and take a 2xx alone: the graph answers them 400 or 405.
      response.writeHead(302, { location: asksForPage(request) ? graphPath : '/readyz' }).end();
    } else {
      send(response, 404, { error: `Nothing is served at this path. The graph is at ${graphPath}.` });
    }
  };
}

/** Caches such as Varnish keep an answer without `cache-control` for minutes: a process that ends would look ready. */
function send(response: ServerResponse, status: number, body: object): void {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
