import { createHmac, timingSafeEqual } from 'node:crypto';
import { Lru } from '../common/lru.ts';
import { EVENT_TYPES, type EventType } from '../events/log.ts';

/** The parts of a path under `/webhooks`. Only the signature shows if they are true. */
export interface IngressAddress {
  readonly clientId: string;
  /** It may be one that this version does not know. */
  readonly type: string;
  readonly signature: string;
}

/** An address of a type that this version takes in. */
export interface IngressTarget extends IngressAddress {
  readonly type: EventType;
}

const TARGET = /\/webhooks\/([A-Za-z0-9_-]{1,64})\/([A-Z_]{1,64})\/([A-Za-z0-9_-]+)$/;

/** Returns the address to register a webhook with. It is a secret, because it is all that is needed to post events. */
export function ingressUrl(publicUrl: string, clientId: string, type: EventType, secret: string): string {
  return `${publicUrl.replace(/(?<!\/)\/+$/, '')}/webhooks/${clientId}/${type}/${sign(`${clientId}:${type}`, secret)}`;
}

/**
 * Returns the token to register that webhook with. It is derived from the secret, so that any process can check it and none
 * has to keep it.
 */
export function ingressToken(clientId: string, type: string, secret: string): string {
  return sign(`token:${clientId}:${type}`, secret);
}

/**
 * Returns whose deliveries, and of which type, the gateway at `publicUrl` takes in at this address; undefined if it takes none: the
 * address is not its own, or none of the secrets has signed it.
 */
export function ingressTarget(
  publicUrl: string,
  url: string,
  secrets: readonly string[],
): IngressTarget | undefined {
  const target = readIngressPath(pathAt(publicUrl, url) ?? '');
  return target !== undefined && isOfKnownType(target) && isSigned(target, secrets) ? target : undefined;
}

/** True if an address leads to the ingress of the gateway at `publicUrl`, which may refuse what comes there. */
export const isIngressAddress = (publicUrl: string, url: string): boolean =>
  pathAt(publicUrl, url) !== undefined;

/**
 * Returns the path of an address beneath the ingress of `publicUrl`, from `/webhooks/` on; undefined for any other address. The service may
 * show an address in another spelling than it was registered in, such as without `:443`: both are read as a browser would.
 */
function pathAt(publicUrl: string, url: string): string | undefined {
  const base = normal(publicUrl).replace(/(?<!\/)\/+$/, '');
  const address = normal(url);
  return address.startsWith(`${base}/webhooks/`) ? address.slice(base.length) : undefined;
}

/** Returns an address with its host in small letters and punycode, and without a default port (WHATWG URL). */
const normal = (url: string): string => URL.parse(url)?.href ?? url;

const MASK = '***';

/** Returns the address with its signature as `***`, whichever gateway it belongs to; any other address unchanged. */
export function maskIngressUrl(url: string): string {
  const [address = '', ...rest] = url.split(/(?=[?#])/);
  return TARGET.test(address)
    ? [`${address.slice(0, address.lastIndexOf('/') + 1)}${MASK}`, ...rest].join('')
    : url;
}

/** True if an address is one that {@link maskIngressUrl} has masked. */
export function isMaskedIngressUrl(url: string): boolean {
  const [address = ''] = url.split(/(?=[?#])/);
  return address.endsWith(`/${MASK}`) && TARGET.test(`${address.slice(0, -MASK.length)}signature`);
}

/** Reads `/webhooks/{clientId}/{type}/{signature}`; undefined for any other path. */
export function readIngressPath(path: string): IngressAddress | undefined {
  const [whole = '', clientId = '', type = '', signature = ''] = TARGET.exec(path) ?? [];
  return whole === path && path !== '' ? { clientId, type, signature } : undefined;
}

/** True if this version takes in what is sent to the address. */
export const isOfKnownType = (address: IngressAddress): address is IngressTarget =>
  EVENT_TYPES.some((known) => known === address.type);

/** True if an address has the form of an ingress, and its type is one that this version does not know. */
export function isOfUnknownType(url: string): boolean {
  const [, , name] = TARGET.exec(url) ?? [];
  return name !== undefined && !EVENT_TYPES.some((known) => known === name);
}

/** True if one of the secrets made the signature. */
export function isSigned({ clientId, type, signature }: IngressAddress, secrets: readonly string[]): boolean {
  return isOneOf(
    signature,
    secrets.map((secret) => sign(`${clientId}:${type}`, secret)),
  );
}

/** True if a header holds the registered token, alone or as `Bearer`. */
export function isToken(
  header: string | undefined,
  { clientId, type }: IngressAddress,
  secrets: readonly string[],
): boolean {
  return isOneOf(
    (header ?? '').replace(/^Bearer +/i, ''),
    secrets.map((secret) => ingressToken(clientId, type, secret)),
  );
}

/** The latest signatures. The same few addresses take all deliveries, and an HMAC is a good part of the cost of one. */
const signatures = new Lru<string>(1_000);

function sign(text: string, secret: string): string {
  const key = `${secret}\n${text}`;
  const known = signatures.get(key);
  if (known !== undefined) return known;
  const signature = createHmac('sha256', secret).update(text).digest('base64url');
  signatures.set(key, signature);
  return signature;
}

/** Compares in constant time for texts of one length. */
function isOneOf(token: string, right: readonly string[]): boolean {
  const bytes = Buffer.from(token);
  let found = false;
  for (const candidate of right) {
    const wanted = Buffer.from(candidate);
    found = (bytes.length === wanted.length && timingSafeEqual(bytes, wanted)) || found;
  }
  return found;
}
