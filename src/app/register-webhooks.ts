import { Agent } from 'undici';
import { EVENT_TYPES, type EventType } from '../events/log.ts';
import type { IngressAddresses } from '../operation/services.ts';
import type { SandboxAccess } from './sandbox-access.ts';

/** Registers the gateway's own ingress for the events of the sandbox. @throws Error if the sandbox refuses. */
export async function registerWebhooks(sandbox: SandboxAccess, ingress: IngressAddresses): Promise<void> {
  const agent = new Agent();
  try {
    await Promise.all(EVENT_TYPES.map((type) => registerWebhook(sandbox, ingress, type, agent)));
  } finally {
    await agent.close();
  }
}

/** Registers one webhook as any client of the service would (docs/upstream-api.md, endpoint 17). */
async function registerWebhook(
  sandbox: SandboxAccess,
  ingress: IngressAddresses,
  type: EventType,
  agent: Agent,
): Promise<void> {
  const { clientId } = sandbox;
  const { statusCode, body } = await agent.request({
    origin: sandbox.url,
    path: `/v1/clients/${clientId}/webhooks`,
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_id: clientId,
      url: ingress.url(clientId, type),
      token: ingress.token(clientId, type),
      webhook_type: type,
      auth_type: 'AUTH',
    }),
  });
  const answer = await body.text();
  if (statusCode >= 300)
    throw new Error(`The sandbox refused the ${type} webhook with status ${statusCode}: ${answer}`);
}
