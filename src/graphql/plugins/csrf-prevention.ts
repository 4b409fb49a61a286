import type { GraphQLParams, Plugin } from 'graphql-yoga';
import { refusedRequest } from '../refused-request.ts';

/**
 * Refuses what another site's page can send in a user's name without the browser asking first: a POST that is not JSON
 * (forms, `text/plain`), and a GET from elsewhere. A GET is served to the page's own origin, to programs, and to
 * requests with a header that makes a browser ask first.
 */
export function useCsrfPrevention(): Plugin {
  return {
    onRequestParse({ request, url, setRequestParser }) {
      if (request.method === 'POST') {
        const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
        if (type !== 'application/json') {
          throw refusedRequest(
            415,
            `A GraphQL request is a POST of application/json; this one is ${type || 'of no type'}.`,
          );
        }
      } else if (request.method === 'GET') {
        if (isCrossSite(request.headers)) {
          throw refusedRequest(403, 'A GET from another site is refused: send a POST of application/json.');
        }
        setRequestParser(() => readQuery(url.searchParams));
      }
    },
  };
}

/** The parameters of a GET (GraphQL over HTTP); Yoga's own reading takes malformed JSON for a failure of the server. */
function readQuery(params: URLSearchParams): GraphQLParams {
  const parameters = ['operationName', 'query', 'documentId', 'variables', 'extensions'].flatMap((name) => {
    const value = params.get(name);
    if (value === null || value === '') return [];
    return [[name, name === 'variables' || name === 'extensions' ? json(name, value) : value]];
  });
  // Yoga checks next that each is of the form that it must have.
  return Object.fromEntries(parameters) as GraphQLParams;
}

function json(name: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw refusedRequest(400, `The parameter "${name}" is not JSON.`);
  }
}

function isCrossSite(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site');
  if (site === null || site === 'same-origin' || site === 'none') return false;
  return !headers.has('authorization') && headers.get('content-type') !== 'application/json';
}
