/** `money:move` by the way in which money is moved: each of these is a part of it. */
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

/** Someone whom the upstream, or the operator's identity provider, has accepted. */
export interface Caller {
  /** The client (merchant) acted for. A UUID. */
  readonly clientId: string;
  /** When set, the caller sees and moves only what belongs to this customer. */
  readonly customerId: string | undefined;
  /** Whom the operator's identity provider names; undefined in passthrough, and where its token names nobody. */
  readonly subject: string | undefined;
  /** Whose the idempotency keys are that the caller names; undefined for those of the client, or of the customer. */
  readonly keyOwner: string | undefined;
  readonly scopes: ReadonlySet<Scope>;
  /** Whether the gateway holds the credentials of other clients too: clients take turns then, and not their customers and subjects. */
  readonly amongClients?: boolean;
  /** When the credential ends, in milliseconds since the epoch; undefined when it does not say. */
  readonly expiresAt: number | undefined;
}
