import type { Caller } from '../auth/caller.ts';
import { Lru } from '../common/lru.ts';
import { clientGroup, type Requester } from '../common/party.ts';

/** What a verified credential counts for. */
export interface KnownKeys {
  /** For a fair share of REST calls and operations. */
  readonly requester: Requester;
  /**
   * For turns of this process, however many credentials it has: in service mode the subject; the client in passthrough, and where one gateway
   * serves several clients.
   */
  readonly turnKey: string;
}

const MAX_KNOWN = 20_000;

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i;

/** The token of an `Authorization`; undefined where it has none. */
const tokenOf = (authorization: string | undefined): string | undefined =>
  BEARER.exec(authorization ?? '')?.[1];

/**
 * Credentials that were verified, and whose they are. A stranger can make up as many credentials as it likes: one that nobody has
 * verified counts for the address that it came from.
 *
 * FIFO eviction: to note each use would cost more. A key that is still in use is noted again by its next operation.
 */
export class CallerKeys {
  readonly #known = new Lru<KnownKeys>(MAX_KNOWN);
  /** The bearer that was looked for last: the parts of one request ask one after the other. */
  #last: { readonly authorization: string; readonly token: string; keys: KnownKeys | undefined } | undefined;

  /** Undefined for a token that nobody has verified. */
  find(token: string): KnownKeys | undefined {
    return this.#last?.token === token ? this.#last.keys : this.#known.peek(token);
  }

  /** Notes a token that was verified. */
  note(token: string, caller: Caller): KnownKeys {
    const requester = requesterOf(caller, token);
    const keys = {
      requester,
      turnKey: caller.subject === undefined || caller.amongClients ? requester.group : requester.caller,
    };
    this.#known.set(token, keys);
    if (this.#last?.token === token) this.#last.keys = keys;
    return keys;
  }

  /** Undefined for an `Authorization` that nobody has verified. */
  findBearer(authorization: string | undefined): KnownKeys | undefined {
    const token = this.tokenOf(authorization);
    return token === undefined ? undefined : this.find(token);
  }

  /** The token of an `Authorization`; undefined where it has none. */
  tokenOf(authorization: string | undefined): string | undefined {
    if (this.#last !== undefined && this.#last.authorization === authorization) return this.#last.token;
    const token = tokenOf(authorization);
    if (authorization !== undefined && token !== undefined) {
      this.#last = { authorization, token, keys: this.#known.peek(token) };
    }
    return token;
  }

  /**
   * What the bearer of an `Authorization` takes turns by.
   *
   * @param address the network address that it came from; undefined where it is not known.
   */
  turnKeyOf(authorization: string | undefined, address: string | undefined): string {
    return this.findBearer(authorization)?.turnKey ?? addressKey(address);
  }
}

/** The key that all unverified callers of an address share. */
export const addressKey = (address: string | undefined): string => `address ${address ?? ''}`;

/** The one requester that all unverified callers of an address are. */
export function requesterOfAddress(address: string | undefined): Requester {
  const key = addressKey(address);
  return { caller: key, group: key };
}

/**
 * For whom the gateway looks up who paid for a receipt: the customer whose reader asks, else the client whose feed is served. So no
 * reader waits for the look-ups of another, nor a feed for those of a reader.
 */
export const requesterOfReceipts = ({
  clientId,
  customerId,
  amongClients,
}: Pick<Caller, 'clientId' | 'amongClients'> & Partial<Pick<Caller, 'customerId'>>): Requester =>
  customerId === undefined
    ? { caller: 'receipts', group: clientGroup(clientId) }
    : amongClients
      ? { caller: `receipts ${customerId}`, group: clientGroup(clientId) }
      : { caller: 'receipts', group: customerGroup(clientId, customerId) };

/** For whom the gateway itself reads for a client, under its own token. Where the service fails for the client, it fails for this too. */
export const requesterOfGateway = (work: 'settling' | 'reconciling', clientId: string): Requester => ({
  caller: `gateway ${work}`,
  group: `gateway ${work} ${clientId}`,
  failureDomain: clientGroup(clientId),
});

/** What a log line may say of a group: what it is, and its client where its name holds it. No subject, customer or address. */
export function toldOfGroup(group: string): { readonly of: string; readonly clientId?: string } {
  const [of = '', clientId] = group.split(' ');
  return clientId !== undefined && ['client', 'customer', 'gateway'].includes(of) ? { of, clientId } : { of };
}

const customerGroup = (clientId: string, customerId: string): string => `customer ${clientId} ${customerId}`;

/**
 * Returns the requester that a verified caller is.
 *
 * - A caller is the subject of its token; where that names none, as in passthrough, it is the token.
 * - Its group is the customer that it is narrowed to. Of a caller for the whole client it is the subject alone, and where there is none
 *   the client.
 * - Where tokens name the client, the group is always the client, and all who are narrowed to one customer are one caller.
 */
export function requesterOf(
  { clientId, customerId, subject, amongClients }: Caller,
  token: string,
): Requester {
  const caller = subject === undefined ? `token ${token}` : `subject ${subject}`;
  if (amongClients) {
    const name = customerId === undefined ? caller : `customer ${customerId}`;
    return { caller: `${name} of ${clientId}`, group: clientGroup(clientId) };
  }
  if (customerId !== undefined) return { caller, group: customerGroup(clientId, customerId) };
  return { caller, group: subject === undefined ? clientGroup(clientId) : caller };
}
