import { EVENT_TYPES } from '../events/log.ts';
import { ingressToken, isIngressUrl, isOfUnknownType } from '../ingress/addresses.ts';
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
   * Where its address leads. `here-unsigned`: to the gateway's own address, which the gateway refuses. `here-unknown-type`: the
   * same, of a type that this version does not know. `unknown`: the gateway does not know its own address.
   */
  readonly leads:
    | 'here'
    | 'here-older-secret'
    | 'here-unsigned'
    | 'here-unknown-type'
    | 'elsewhere'
    | 'unknown';
  /** True if it is registered with the token that the ingress checks, as far as the service shows it. */
  readonly tokenIsOurs: boolean;
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
      leads: leadsTo(webhook.url, receiver),
      tokenIsOurs: receiver !== undefined && hasOurToken(clientId, webhook, receiver),
    }));
}

function leadsTo(address: unknown, receiver: Receiver | undefined): Registration['leads'] {
  if (receiver === undefined) return 'unknown';
  const url = present(address) ?? '';
  const { publicUrl, signing, older } = receiver;
  if (isIngressUrl(publicUrl, url, [signing])) return 'here';
  if (isIngressUrl(publicUrl, url, older)) return 'here-older-secret';
  if (!url.startsWith(`${publicUrl.replace(/(?<!\/)\/+$/, '')}/webhooks/`)) return 'elsewhere';
  return isOfUnknownType(url) ? 'here-unknown-type' : 'here-unsigned';
}

function hasOurToken(clientId: string, { token, webhookType }: Webhook, { signing }: Receiver): boolean {
  const type = EVENT_TYPES.find((known) => known === webhookType);
  return present(token) === null || (type !== undefined && token === ingressToken(clientId, type, signing));
}
