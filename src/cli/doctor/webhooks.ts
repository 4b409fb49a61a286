import type { Variables } from '../../app/variables.ts';
import { clock } from '../../common/clock.ts';
import { isLoopback } from '../../common/loopback.ts';
import type { EventType } from '../../events/log.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { readWebhooks } from '../../upstream/webhooks.ts';
import { type Receiver, type Registration, readRegistrations } from '../registrations.ts';
import { receiverOf } from '../webhooks.ts';
import { type Finding, Findings, reasonOf } from './finding.ts';

const TIMEOUT_MS = 5_000;
/** Without these types the gateway learns of no receipt and no credit. */
const NEEDED: readonly EventType[] = ['CEP', 'MONEY_IN'];
/** Without this type the states of payments are read on a schedule, and so are known later. */
const WANTED: EventType = 'STATUS_UPDATE';
const SYNC = 'pasarela webhooks sync';

/** Checks that the address that the provider gets leads to a gateway. It posts nothing that could become an event. */
export async function lookAtAddress({ PUBLIC_URL, UPSTREAM_URL }: Variables): Promise<readonly Finding[]> {
  const found = new Findings('address');
  if (UPSTREAM_URL === undefined) return found.list;
  if (PUBLIC_URL === undefined) {
    found.warning(
      'PUBLIC_URL is not set: no webhook can be registered, so that no event arrives',
      'Set PUBLIC_URL to the address at which the provider reaches the gateway, as in https://graph.example.mx.',
    );
    return found.list;
  }
  const { protocol, hostname } = new URL(PUBLIC_URL);
  if (protocol === 'http:' && !isLoopback(hostname)) {
    found.warning(
      'PUBLIC_URL is http: deliveries, and the secret in their address, travel unencrypted',
      'Use https.',
    );
  }
  try {
    // Without a valid signature the ingress refuses it before it reads a byte.
    const response = await fetch(`${PUBLIC_URL}/webhooks/doctor/CEP/unsigned`, {
      method: 'POST',
      redirect: 'manual',
      signal: clock.timeoutSignal(TIMEOUT_MS),
    });
    await response.body?.cancel();
    if (response.status === 401) found.ok(`${PUBLIC_URL} leads to a gateway`);
    else if ([502, 503, 504].includes(response.status)) {
      found.warning(`nobody answers behind ${PUBLIC_URL} (status ${response.status})`, 'Start the gateway.');
    } else {
      found.failure(
        `what answers at ${PUBLIC_URL}/webhooks/ is not the gateway (status ${response.status}, not 401)`,
        'Correct PUBLIC_URL, or have the proxy in front pass on /webhooks/ unchanged.',
      );
    }
  } catch (error) {
    found.warning(
      `${PUBLIC_URL} is not reached from here: ${reasonOf(error)}`,
      'Start the gateway, and see that the provider reaches this address; from within its network that may not be told.',
    );
  }
  return found.list;
}

/** Checks that each needed type has exactly one active webhook, and that it leads here. */
export async function lookAtWebhooks(
  variables: Variables,
  rest: Rest | undefined,
): Promise<readonly Finding[]> {
  const found = new Findings('webhooks');
  const receiver = receiverOf(variables);
  if (variables.UPSTREAM_URL === undefined) {
    found.ok('registered at the sandbox by every start');
    return found.list;
  }
  if (rest === undefined || receiver === undefined) {
    const missing = receiver === undefined ? 'PUBLIC_URL' : 'an accepted token';
    found.skipped(`not looked at without ${missing}`);
    return found.list;
  }
  try {
    const registrations = readRegistrations(rest.clientId, await readWebhooks(rest), receiver);
    const look = { found, receiver, checksToken: variables.WEBHOOK_TOKEN_HEADER !== undefined };
    const ofType = (type: EventType) => registrations.filter(({ webhook }) => webhook.webhookType === type);
    for (const type of NEEDED) lookAtType(type, ofType(type), look);
    if (ofType(WANTED).some(({ isActive }) => isActive)) lookAtType(WANTED, ofType(WANTED), look);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    found.failure(`the list cannot be read: ${error.message}`, 'The checks of upstream and token say more.');
  }
  return found.list;
}

interface Look {
  readonly found: Findings;
  readonly receiver: Receiver;
  readonly checksToken: boolean;
}

function lookAtType(type: EventType, registrations: readonly Registration[], look: Look): void {
  const { found } = look;
  const active = registrations.filter(({ isActive }) => isActive);
  const [first] = active;
  if (first === undefined) {
    const inactive = registrations.find(({ leads }) => leads.startsWith('here'));
    found.failure(
      inactive === undefined
        ? `no ${type} webhook is registered: none of its events arrives`
        : `the ${type} webhook ${inactive.webhook.id} is ${inactive.webhook.webhookStatus}: none of its events arrives`,
      SYNC,
    );
    return;
  }
  if (active.length > 1) {
    const ids = active.map(({ webhook }) => webhook.id).join(', ');
    found.warning(
      `${active.length} ${type} webhooks are active (${ids}): whose answer counts for a credit is not documented`,
      'pasarela webhooks list, then pasarela webhooks remove ID for those that should not be.',
    );
  }
  const here =
    active.find(({ leads }) => leads === 'here') ?? active.find(({ leads }) => leads.startsWith('here'));
  lookAtOne(type, here ?? first, look);
}

function lookAtOne(type: EventType, { webhook, leads, tokenIsOurs }: Registration, look: Look): void {
  const { found, receiver, checksToken } = look;
  const name = `the ${type} webhook ${webhook.id}`;
  if (leads === 'elsewhere') {
    const where = URL.canParse(webhook.url) ? new URL(webhook.url).origin : 'no address';
    found.failure(
      `${name} leads to ${where}, not to ${receiver.publicUrl}`,
      `${SYNC} registers this gateway.`,
    );
  } else if (leads === 'here-unsigned') {
    found.failure(`${name} is signed with another WEBHOOK_SECRET: its deliveries get 401`, SYNC);
  } else if (leads === 'here-unknown-type') {
    found.failure(
      `${name} has the address of a type that this version does not know: its deliveries get 401`,
      SYNC,
    );
  } else if (leads === 'here-older-secret') {
    found.warning(
      `${name} is signed with the second WEBHOOK_SECRET`,
      `${SYNC}, before that secret is dropped.`,
    );
  } else if (checksToken && !tokenIsOurs) {
    found.failure(`${name} is registered with a token that the ingress does not accept: 401`, SYNC);
  } else {
    found.ok(`${name} leads here`);
  }
}
