import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../common/logger.ts';
import { isAnswerable } from '../common/request-line.ts';
import { asksForPage } from '../workbench/workbench.ts';

const WEBHOOKS_PATH = '/webhooks/';
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
    response.writeHead(200, { 'content-type': routes.metrics.contentType }).end(text);
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

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
