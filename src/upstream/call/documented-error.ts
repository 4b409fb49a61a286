import type { UpstreamAnswer } from '../../common/attempt.ts';
import { isObject } from './json.ts';

/** Refusals whose body is not shown: the documented identifier tells them, in whatever came. */
const IDENTIFIERS = new Map([
  [404, 'destination_not_found'],
  [409, 'external_transfer_not_allowed'],
]);

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** An item of `details` as the service makes them. Others write such lists too, with a domain of their own. */
const isServiceDetail = (item: unknown): boolean =>
  isObject(item) && isText(item['reason']) && item['domain'] === 'CORE' && isObject(item['metadata']);

/**
 * Whether a 4xx is the service's own word: it has the one error body that docs/upstream-api.md shows under "Errors", or an
 * identifier that is documented there for its status. Proxies, firewalls and load balancers stand between, and answer in their
 * own ways; none of them knows whether the request has been carried out.
 */
export function isDocumentedError({ status, body, text }: UpstreamAnswer): boolean {
  if (status < 400 || status >= 500) return false;
  const identifier = IDENTIFIERS.get(status);
  if (identifier !== undefined && text.includes(identifier)) return true;
  return (
    isObject(body) &&
    Number.isInteger(body['code']) &&
    isText(body['message']) &&
    Array.isArray(body['details']) &&
    body['details'].some(isServiceDetail)
  );
}
