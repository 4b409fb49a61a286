import { ingressToken, ingressUrl, isIngressUrl, maskIngressUrl } from '../ingress/addresses.ts';
import type { IngressAddresses } from '../operation/services.ts';
import type { ServerConfig } from './server-config.ts';

/** Where the provider reaches this gateway, and which secrets deliveries may carry. */
export interface OwnAddresses {
  readonly ingress: IngressAddresses;
  /** The secrets that deliveries may be signed with. */
  readonly secrets: readonly string[];
  /** The gateway listens at this address by now: its own one where no other is configured as its public one. */
  listensAt(url: string): void;
}

export function createOwnAddresses({
  publicUrl: configured,
  webhookSecrets,
}: Pick<ServerConfig, 'publicUrl' | 'webhookSecrets'>): OwnAddresses {
  let publicUrl = configured === 'self' ? undefined : configured;
  const [first, ...older] = webhookSecrets;
  const signing = first.reveal();
  const secrets = [signing, ...older.map((secret) => secret.reveal())];
  return {
    ingress: {
      url: (clientId, type) => publicUrl && ingressUrl(publicUrl, clientId, type, signing),
      token: (clientId, type) => ingressToken(clientId, type, signing),
      feeds: (url) => publicUrl !== undefined && isIngressUrl(publicUrl, url, secrets),
      mask: maskIngressUrl,
    },
    secrets,
    listensAt(url) {
      if (configured === 'self') publicUrl = url;
    },
  };
}
