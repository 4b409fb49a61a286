import type { Authenticator, RestFor } from '../auth/authenticator.ts';
import { createPassthrough } from '../auth/passthrough.ts';
import type { ServiceClient, ServiceOptions } from '../auth/service.ts';
import type { TokenMetrics } from '../auth/token-verifier.ts';
import type { Logger } from '../common/logger.ts';
import type { Secret } from '../common/secret.ts';

/** The settings that decide how callers are identified. */
interface AuthenticatorConfig {
  /** The gateway's own credentials and how callers' tokens are verified; undefined for passthrough. */
  readonly service: Omit<ServiceOptions, 'utcOffset'> | undefined;
  readonly tokenClientClaims: readonly string[];
  readonly upstreamUtcOffset: string;
  readonly redisUrl: Secret | undefined;
}

/**
 * Chooses the way in which callers are identified (docs/authentication.md). Code that only one of the two ways needs is
 * loaded where it is used.
 */
export async function createAuthenticator(
  config: AuthenticatorConfig,
  restFor: RestFor,
  logger: Logger,
  metrics: TokenMetrics,
): Promise<Authenticator> {
  const { service, redisUrl } = config;
  if (service === undefined) return createPassthrough(config.tokenClientClaims);
  const { createService } = await import('../auth/service.ts');
  const stores = redisUrl && (await import('../auth/shared-token-store.ts'));
  const shareOf =
    redisUrl &&
    stores &&
    ((client: ServiceClient) =>
      stores.openSharedTokenStore({ ...client, redisUrl: redisUrl.reveal(), logger }));
  return createService(
    { ...service, utcOffset: config.upstreamUtcOffset },
    restFor,
    shareOf,
    metrics,
    logger,
  );
}
