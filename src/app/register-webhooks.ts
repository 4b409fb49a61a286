import { Agent } from 'undici';
import { EVENT_TYPES, type EventType } from '../events/log.ts';
import type { IngressAddresses } from '../operation/services.ts';
import type { SandboxAccess } from './sandbox-access.ts';

/** How long the sandbox may take for one of these calls, in milliseconds: a test may have it hang. */
const ANSWER_MS = 5_000;
/** The same for a removal. A test may end with a sandbox that hangs, and Jest gives its end no more than 5 s. */
const REMOVAL_MS = 1_000;

const withAgent = async <T>(answerMs: number, work: (agent: Agent) => Promise<T>): Promise<T> => {
  const agent = new Agent({ headersTimeout: answerMs, bodyTimeout: answerMs });
  try {
    return await work(agent);
  } finally {
    await agent.destroy();
  }
};

/**
 * Registers the gateway's own ingress for the events of the sandbox.
 *
 * @returns a function that removes what was registered, where the sandbox still answers
 * @throws Error if the sandbox refuses one of them; the others are removed by then.
 */
export async function registerWebhooks(
  sandbox: SandboxAccess,
  ingress: IngressAddresses,
): Promise<() => Promise<void>> {
  const tries = await withAgent(ANSWER_MS, (agent) =>
    Promise.allSettled(EVENT_TYPES.map((type) => registerWebhook(sandbox, ingress, type, agent))),
  );
  const paths = tries.filter((one) => one.status === 'fulfilled').map(({ value }) => value);
  const failed = tries.find((one) => one.status === 'rejected');
  if (failed !== undefined) {
    await removeWebhooks(sandbox, paths);
    throw failed.reason;
  }
  return () => removeWebhooks(sandbox, paths);
}

/** Removes those that the sandbox lets be removed in time. */
const removeWebhooks = (sandbox: SandboxAccess, paths: readonly string[]): Promise<void> =>
  withAgent(REMOVAL_MS, async (agent) => {
    const headers = { authorization: `Bearer ${sandbox.accessToken}` };
    const remove = async (path: string) => {
      const { body } = await agent.request({ origin: sandbox.url, path, method: 'DELETE', headers });
      await body.dump();
    };
    await Promise.allSettled(paths.map(remove));
  });

/**
 * Registers one webhook as any client of the service would (docs/upstream-api.md, endpoint 17).
 *
 * @returns the path of the webhook
 */
async function registerWebhook(
  sandbox: SandboxAccess,
  ingress: IngressAddresses,
  type: EventType,
  agent: Agent,
): Promise<string> {
  const { clientId } = sandbox;
  const path = `/v1/clients/${clientId}/webhooks`;
  const { statusCode, body } = await agent.request({
    origin: sandbox.url,
    path,
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
  return `${path}/${JSON.parse(answer).id}`;
}
