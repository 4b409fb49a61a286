import { createGraphQLError, type Plugin } from 'graphql-yoga';

const refuse = (status: number, message: string): Error =>
  createGraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status } } });

/**
 * Refuses what another site's page can send in a user's name without the browser asking first: a POST that is not JSON
 * (forms, `text/plain`), and a GET from elsewhere. A GET is served to the page's own origin, to programs, and to
 * whoever sends a header that a browser asks about first.
 */
export function useJsonRequests(): Plugin {
  return {
    onRequestParse({ request }) {
      if (request.method === 'POST') {
        const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
        if (type !== 'application/json') {
          throw refuse(
            415,
            `A GraphQL request is a POST of application/json; this one is ${type || 'of no type'}.`,
          );
        }
      } else if (request.method === 'GET' && isCrossSite(request.headers)) {
        throw refuse(403, 'A GET from another site is refused: send a POST of application/json.');
      }
    },
  };
}

function isCrossSite(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site');
  if (site === null || site === 'same-origin' || site === 'none') return false;
  return !headers.has('authorization') && headers.get('content-type') !== 'application/json';
}
