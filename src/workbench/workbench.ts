import type { IncomingMessage, ServerResponse } from 'node:http';
import { entropy } from '../common/entropy.ts';
import { asksForPage } from '../common/page-request.ts';
import { createAssets } from './assets.ts';
import { controlSandbox, type EmbeddedSandbox } from './sandbox-control.ts';

/** What the page at the graph's address has to know of its gateway. */
export interface WorkbenchOptions {
  /** Undefined in front of a real service. */
  readonly sandbox: EmbeddedSandbox | undefined;
  /** Whose tokens callers bring. */
  readonly auth: 'passthrough' | 'service';
}

/** GraphiQL for browsers: the page at the graph's own address, its files beneath, and its way to the sandbox. */
export interface Workbench {
  /**
   * Answers a request that is the page's.
   *
   * @returns false for any other, of which nothing has been touched.
   */
  handle(request: IncomingMessage, response: ServerResponse, path: string): boolean;
}

const SCRIPTS_OF_OWN = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  // The editor positions its lines by styles of its own making.
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self' data:",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy': SCRIPTS_OF_OWN,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Each file's name holds a hash of its content. */
const FILE_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'content-security-policy': SCRIPTS_OF_OWN,
  'x-content-type-options': 'nosniff',
};

const OFF =
  'This is a GraphQL endpoint, for programs that send it POST requests; its page for people, GraphiQL, is off here (GRAPHIQL=true turns it on).\n';

/**
 * @param graphPath where the graph is served, such as `/graphql`; the page's files are beneath.
 * @param options undefined where GraphiQL is off: a browser then reads a sentence.
 */
export function createWorkbench(
  graphPath: string,
  introspection: boolean,
  options: WorkbenchOptions | undefined,
): Workbench {
  const beneath = `${graphPath}/workbench/`;
  const assets = createAssets();
  const instance = entropy.uuid();

  const session = (
    request: IncomingMessage,
    response: ServerResponse,
    { sandbox: embedded, auth }: WorkbenchOptions,
  ) => {
    const sandbox =
      embedded !== undefined && (embedded.isOwnHost(request.headers.host) ? 'here' : 'elsewhere');
    const body = JSON.stringify({ instance, introspection, auth, sandbox });
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(body);
  };

  return {
    handle(request, response, path) {
      const { method } = request;
      if (path === graphPath) {
        if (!asksForPage(request)) return false;
        if (options !== undefined) {
          finish(assets.send(request, response, 'index.html', PAGE_HEADERS), response);
          return true;
        }
        // A query in the address is one, also from a browser.
        if (/[?&](query|documentId|extensions)=/.test(request.url ?? '')) return false;
        response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end(OFF);
        return true;
      }
      if (options === undefined || !path.startsWith(beneath)) return false;
      const name = path.slice(beneath.length);
      if (name === 'sandbox' || name.startsWith('sandbox/')) {
        if (options.sandbox === undefined) return false;
        finish(controlSandbox(options.sandbox, `/${name}`, request, response), response);
        return true;
      }
      if (method !== 'GET' && method !== 'HEAD') return false;
      if (name === 'session') session(request, response, options);
      else finish(assets.send(request, response, name, FILE_HEADERS), response);
      return true;
    },
  };
}

/** A file that cannot be read is for the operator to know of: the browser sees that it did not come. */
function finish(work: Promise<void>, response: ServerResponse): void {
  work.catch(() => response.destroy());
}
