import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Choices } from './choices.ts';

/** gRPC codes, of which the service's error body carries one: 9 in every case that the spec shows. */
const SHOWN_CODE = 9;
const CODE_BY_STATUS = new Map<number, number>([
  [401, 16],
  [403, 7],
  [404, 5],
  [409, 10],
  [500, 13],
]);

/** A refusal, on its way to the error body of docs/upstream-api.md, "Errors". */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly status: ContentfulStatusCode;
  readonly reason: string;

  /** `reason` as in the body; `detail` the human message. */
  constructor(status: ContentfulStatusCode, reason: string, detail: string) {
    super(detail);
    this.status = status;
    this.reason = reason;
  }
}

export function dataError(detail: string): ApiError {
  return new ApiError(400, 'DATA_ERROR', detail);
}

export function preconditionFailed(detail: string): ApiError {
  return new ApiError(400, 'FAILED_PRECONDITION', detail);
}

/** 404 with an identifier such as `destination_not_found`. */
export function notFound(identifier: string): ApiError {
  return new ApiError(404, identifier, identifier);
}

export function conflict(identifier: string, detail = identifier): ApiError {
  return new ApiError(409, identifier, detail);
}

/** 401, saying nothing of which credential was wrong. */
export function unauthenticated(): ApiError {
  return new ApiError(401, 'UNAUTHENTICATED', 'The credentials are missing, invalid or expired.');
}

/** What a caller gets for a client that is not its own. */
export function otherClient(choices: Choices): ApiError {
  return choices.otherClient === 404
    ? notFound('client_not_found')
    : new ApiError(403, 'PERMISSION_DENIED', 'The client does not match the credentials.');
}

/** The module and method that an error body names. */
export interface Operation {
  module: string;
  method: string;
}

/** Writes an error as the spec's body, or as a page where that is chosen for what the spec does not show. */
export function errorResponse(
  c: Context,
  error: ApiError,
  operation: Operation | undefined,
  pages: Choices['errorPages'],
): Response {
  if (pages === 'html' && [401, 403, 404, 409].includes(error.status)) {
    return c.html(errorPage(error), error.status);
  }
  const body = {
    code: CODE_BY_STATUS.get(error.status) ?? SHOWN_CODE,
    message: 'API Error',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: error.reason,
        domain: 'CORE',
        metadata: {
          error_detail: error.message,
          http_code: String(error.status),
          module: operation?.module ?? 'Gateway',
          method_name: operation?.method ?? 'Unknown',
          error_code: '10-E4120',
        },
      },
    ],
  };
  return c.json(body, error.status);
}

function errorPage(error: ApiError): string {
  const detail = error.message === error.reason ? '' : `<p>${error.message}</p>`;
  return `<!doctype html>
<html><head><title>${error.status}</title></head>
<body><h1>${error.status}</h1><p>${error.reason}</p>${detail}<hr><address>edge</address></body></html>
`;
}
