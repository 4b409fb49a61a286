import {
  ingressTarget,
  ingressToken,
  ingressUrl,
  isIngressAddress,
  isMaskedIngressUrl,
  maskIngressUrl,
} from '../ingress/addresses.ts';
import type { IngressAddresses } from '../operation/services.ts';
import type { ServerConfig } from './server-config.ts';

/** The addresses at which the provider reaches this gateway, and the secrets that deliveries may carry. */
export interface OwnAddresses {
  readonly ingress: IngressAddresses;
  /** The secrets by which deliveries may be signed. */
  readonly secrets: readonly string[];
  /** Notes the address at which the gateway listens. It serves as the public one if none is configured. */
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
      target: (url) => (publicUrl === undefined ? undefined : ingressTarget(publicUrl, url, secrets)),
      isOwn: (url) => publicUrl !== undefined && isIngressAddress(publicUrl, url),
      mask: maskIngressUrl,
      isMasked: isMaskedIngressUrl,
    },
    secrets,
    listensAt(url) {
      if (configured === 'self') publicUrl = url;
    },
  };
}
