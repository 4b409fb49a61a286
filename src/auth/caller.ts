/** The parts of `money:move`, one for each way of moving money. */
export const MONEY_SCOPES = [
  'money:move:out',
  'money:move:internal',
  'money:move:validate',
  'money:move:refund',
] as const;

const WORDS = [
  'graph:read',
  'events:read',
  'payments:read',
  'money:move',
  ...MONEY_SCOPES,
  'accounts:write',
  'webhooks:write',
] as const;

/** The rights that a field may ask for. A passthrough caller has all: the upstream decides. */
export type Scope = (typeof WORDS)[number];

export const SCOPES: ReadonlySet<Scope> = new Set<Scope>(WORDS);

/** A caller that the upstream, or the operator's identity provider, has accepted. */
export interface Caller {
  /** The client (merchant) for which the caller acts. A UUID. */
  readonly clientId: string;
  /** If set, the caller sees and moves only what belongs to this customer. */
  readonly customerId: string | undefined;
  /** The subject of the token; undefined in passthrough, and if the token names none. */
  readonly subject: string | undefined;
  /** The owner of the caller's idempotency keys; undefined if they belong to the client, or to the customer. */
  readonly keyOwner: string | undefined;
  readonly scopes: ReadonlySet<Scope>;
  /**
   * True if the caller's token names its client (`AUTH_CLIENT_CLAIM`), also where the gateway stands for one alone. Then clients take turns,
   * instead of customers and subjects.
   */
  readonly amongClients?: boolean;
  /** When the credential ends, in milliseconds since the epoch; undefined when it does not say. */
  readonly expiresAt: number | undefined;
}
