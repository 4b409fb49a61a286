import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CircuitBreaker, createBreaker } from '../../src/upstream/call/breaker.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import { createHttp, type HttpOptions, type UpstreamHttp } from '../../src/upstream/call/http.ts';
import { createRest, type Rest, type RestOptions } from '../../src/upstream/call/rest.ts';

export interface Upstream extends AsyncDisposable {
  readonly url: string;
  readonly http: UpstreamHttp;
  readonly rest: Rest;
  readonly breaker: CircuitBreaker;
  /** The same calls with other options. */
  restOf(options: Partial<RestOptions>): Rest;
  /** Method and URL of every request, in the order of arrival. */
  readonly requests: string[];
}

export const CLIENT_ID = '11111111-2222-4333-8444-555555555555';

/** How the gateway's own HTTP is set for tests. */
export const HTTP: HttpOptions = {
  connectTimeoutMs: 10_000,
  maxAnswerBytes: 5 * 1024 * 1024,
  callsPerCaller: 16,
};

/** A real HTTP server that answers as a test says, and the gateway's own REST calls bound to it. */
export async function startUpstream(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  options: { timeoutMs?: number; operationTimeoutMs?: number; maxAnswerBytes?: number } = {},
): Promise<Upstream> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answer(request, response);
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const breaker = createBreaker(() => performance.now());
  const http = createHttp(url, breaker, {
    ...HTTP,
    maxAnswerBytes: options.maxAnswerBytes ?? HTTP.maxAnswerBytes,
  });
  const ofCaller: RestOptions = {
    http,
    clientId: CLIENT_ID,
    requester: { caller: 'caller', group: 'caller' },
    authorize: fixedCredential({ authorization: 'Bearer token' }),
    headers: {},
    timeoutMs: options.timeoutMs ?? 30_000,
    deadline: Date.now() + (options.operationTimeoutMs ?? 250_000),
  };
  return {
    url,
    http,
    rest: createRest(ofCaller),
    breaker,
    restOf: (others) => createRest({ ...ofCaller, ...others }),
    requests,
    async [Symbol.asyncDispose]() {
      await http.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};
