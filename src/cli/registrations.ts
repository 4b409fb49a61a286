import { EVENT_TYPES } from '../events/log.ts';
import { ingressTarget, ingressToken, isIngressAddress, isOfUnknownType } from '../ingress/addresses.ts';
import { present } from '../upstream/call/json.ts';
import type { Webhook } from '../upstream/webhooks.ts';

/** The gateway as the receiver of webhooks: its address, and the secrets that sign its paths. */
export interface Receiver {
  readonly publicUrl: string;
  /** Signs the addresses that are registered now. */
  readonly signing: string;
  /** Still accepted, while secrets rotate. */
  readonly older: readonly string[];
}

/** A registered webhook, seen from this gateway. */
export interface Registration {
  readonly webhook: Webhook;
  /** True if it is neither deleted nor switched off. */
  readonly isActive: boolean;
  /**
   * Where its address leads. `here-other-address`: to the gateway, at the signed address of another type or client, so that the
   * messages are refused, or kept as that client's. `here-unsigned`: to the gateway's own address, which the gateway refuses.
   * `here-unknown-type`: the same, of a type that this version does not know. `unknown`: the gateway does not know its own address.
   */
  readonly leads:
    | 'here'
    | 'here-older-secret'
    | 'here-other-address'
    | 'here-unsigned'
    | 'here-unknown-type'
    | 'elsewhere'
    | 'unknown';
  /** Which secret made the token that it is registered with; `unknown` where the service shows none. */
  readonly token: 'first' | 'older' | 'other' | 'unknown';
}

/** Returns the client's webhooks as this gateway sees them, without the deleted ones. */
export function readRegistrations(
  clientId: string,
  webhooks: readonly Webhook[],
  receiver: Receiver | undefined,
): readonly Registration[] {
  return webhooks
    .filter((webhook) => present(webhook.deletedAt) === null)
    .map((webhook) => ({
      webhook,
      isActive: webhook.webhookStatus === 'ACTIVE',
      leads: leadsTo(clientId, webhook, receiver),
      token: receiver === undefined ? 'unknown' : tokenOf(clientId, webhook, receiver),
    }));
}

function leadsTo(clientId: string, webhook: Webhook, receiver: Receiver | undefined): Registration['leads'] {
  if (receiver === undefined) return 'unknown';
  const url = present(webhook.url) ?? '';
  const { publicUrl, signing, older } = receiver;
  const newer = ingressTarget(publicUrl, url, [signing]);
  const target = newer ?? ingressTarget(publicUrl, url, older);
  if (target !== undefined) {
    // The case counts: each spelling of a client's id has a log of its own.
    const isItsOwn = target.clientId === clientId && target.type === webhook.webhookType;
    if (!isItsOwn) return 'here-other-address';
    return newer === undefined ? 'here-older-secret' : 'here';
  }
  if (!isIngressAddress(publicUrl, url)) return 'elsewhere';
  return isOfUnknownType(url) ? 'here-unknown-type' : 'here-unsigned';
}

function tokenOf(
  clientId: string,
  { token, webhookType }: Webhook,
  { signing, older }: Receiver,
): Registration['token'] {
  if (present(token) === null) return 'unknown';
  const type = EVENT_TYPES.find((known) => known === webhookType);
  if (type === undefined) return 'other';
  if (token === ingressToken(clientId, type, signing)) return 'first';
  return older.some((secret) => token === ingressToken(clientId, type, secret)) ? 'older' : 'other';
}
