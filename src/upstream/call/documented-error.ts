import type { UpstreamAnswer } from '../../common/attempt.ts';
import { isObject } from './object.ts';

/** By status: the documented identifiers of refusals whose body is not documented. They may stand anywhere in the answer. */
const IDENTIFIERS = new Map([
  [404, 'destination_not_found'],
  [409, 'external_transfer_not_allowed'],
]);

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

/** True for an item of `details` that is the service's. Others write such lists too, with a domain of their own. */
const isServiceDetail = (item: unknown): boolean =>
  isObject(item) && isText(item['reason']) && item['domain'] === 'CORE' && isObject(item['metadata']);

/**
 * True if a 4xx comes from the service itself: it has the error body that docs/upstream-api.md shows under "Errors", or an
 * identifier that is documented there for its status. Proxies, firewalls and load balancers in between answer in other forms,
 * and do not know whether the request was carried out.
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
