import { z } from 'zod';
import { dataError } from '../errors.ts';
import { isWebhookHost, refusedHost } from '../own-hosts.ts';
import { WEBHOOK_TYPES, type Webhook } from '../state.ts';
import type { World } from '../world.ts';

const url = z.url({ protocol: /^https?$/ });
/** What a header can carry: the token is presented in one. */
const token = z.string().regex(/^[\x20-\x7e]{1,1024}$/, 'printable ASCII, at most 1024 characters');
const type = z.enum(WEBHOOK_TYPES);

export const webhookOrder = z.strictObject({ type, url, token });
export type WebhookOrder = z.infer<typeof webhookOrder>;
/** The fields of a webhook that are sent. */
export const webhookFields = { url, token, type };

/** Registers a webhook of a client. @throws ApiError 400 for an address that webhooks may not go to. */
export function addWebhook(
  world: World,
  clientId: string,
  order: WebhookOrder & { readonly authType?: string | undefined },
): Webhook {
  checkHost(world, order.url);
  const now = world.clock.now();
  const webhook: Webhook = {
    id: world.ids.uuid('webhook'),
    clientId,
    url: order.url,
    token: order.token,
    type: order.type,
    authType: order.authType ?? 'AUTH',
    status: 'ACTIVE',
    createdAt: now,
    updatedAt: now,
  };
  world.state.webhooks.set(webhook.id, webhook);
  return webhook;
}

/** The sandbox calls what is registered here, and shows what it is answered: not for anybody's sake. */
export function checkHost(world: World, address: string): void {
  const { hostname } = new URL(address);
  if (!isWebhookHost(hostname, world.webhookHosts)) {
    throw dataError(`body.url: ${refusedHost(hostname).message}`);
  }
}
