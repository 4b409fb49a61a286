import querystring from 'node:querystring';
import type { Variables } from '../../app/variables.ts';
import { clock } from '../../common/clock.ts';
import { isLoopback } from '../../common/loopback.ts';
import { PROBE_PATH } from '../../common/request-line.ts';
import { EVENT_TYPES, type EventType } from '../../events/log.ts';
import { maskIngressUrl } from '../../ingress/addresses.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { readWebhooks } from '../../upstream/webhooks.ts';
import { type Receiver, type Registration, readRegistrations } from '../registrations.ts';
import { receiverOf } from '../webhooks.ts';
import { aboutClient, type Finding, Findings, reasonOf } from './finding.ts';

const TIMEOUT_MS = 5_000;
/** Without these types the gateway learns of no receipt and no credit. */
const NEEDED: readonly EventType[] = ['CEP', 'MONEY_IN'];
/** Without this type the states of payments are read on a schedule, and so are known later. */
const WANTED: EventType = 'STATUS_UPDATE';

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
  const { shown, headers } = withoutUser(PUBLIC_URL);
  if (protocol === 'http:' && !isLoopback(hostname)) {
    found.warning(
      'PUBLIC_URL is http: deliveries, and the secret in their address, travel unencrypted',
      'Use https.',
    );
  }
  try {
    // Without a valid signature the ingress refuses it before it reads a byte.
    const response = await fetch(`${shown}${PROBE_PATH}CEP/unsigned`, {
      method: 'POST',
      headers,
      redirect: 'manual',
      signal: clock.timeoutSignal(TIMEOUT_MS),
    });
    await response.body?.cancel();
    // The gateway's own 401 names no way to sign in.
    if (response.status === 401 && response.headers.has('www-authenticate')) {
      found.failure(
        `what answers at ${shown}/webhooks/ asks for credentials (status 401 with WWW-Authenticate), and so is not the gateway: deliveries get the same`,
        'Have the proxy in front let /webhooks/ pass, or put a user and a password that it takes into PUBLIC_URL.',
      );
    } else if (response.status === 401) found.ok(`${shown} leads to a gateway`);
    else if ([502, 503, 504].includes(response.status)) {
      found.warning(`nobody answers behind ${shown} (status ${response.status})`, 'Start the gateway.');
    } else {
      found.failure(
        `what answers at ${shown}/webhooks/ is not the gateway (status ${response.status}, not 401)`,
        'Correct PUBLIC_URL, or have the proxy in front pass on /webhooks/ unchanged.',
      );
    }
  } catch (error) {
    found.warning(
      `${shown} is not reached from here: ${reasonOf(error)}`,
      'Start the gateway, and see that the provider reaches this address; from within its network that may not be told.',
    );
  }
  return found.list;
}

/** Returns an address without its user and password, which no finding repeats, and the header that they are sent in: `fetch` takes none of them. */
function withoutUser(address: string): { readonly shown: string; readonly headers: Record<string, string> } {
  const url = new URL(address);
  const user = `${querystring.unescape(url.username)}:${querystring.unescape(url.password)}`;
  [url.username, url.password] = ['', ''];
  const headers = user === ':' ? {} : { authorization: `Basic ${Buffer.from(user).toString('base64')}` };
  return { shown: url.href.replace(/\/$/, ''), headers };
}

/**
 * Checks that each needed type has exactly one active webhook, and that each webhook that leads here is the right one. While
 * secrets rotate, says that they all are signed with the first, or why it cannot say so.
 *
 * @param named the client of `rest`; undefined if the gateway serves no other.
 */
export async function lookAtWebhooks(
  variables: Variables,
  rest: Rest | undefined,
  named?: string,
): Promise<readonly Finding[]> {
  const found = new Findings('webhooks', aboutClient(named));
  const receiver = receiverOf(variables);
  if (variables.UPSTREAM_URL === undefined) {
    found.ok('registered at the sandbox by every start');
    return found.list;
  }
  if (rest === undefined || receiver === undefined) {
    const missing = receiver === undefined ? 'PUBLIC_URL' : 'an accepted token';
    const isRotating = (variables.WEBHOOK_SECRET?.length ?? 0) > 1;
    found.skipped(`not looked at without ${missing}${isRotating ? `, so that ${NOT_DONE}` : ''}`);
    return found.list;
  }
  try {
    const registrations = readRegistrations(rest.clientId, await readWebhooks(rest), receiver);
    const checksToken = variables.WEBHOOK_TOKEN_HEADER !== undefined;
    const command =
      named === undefined ? 'pasarela webhooks' : `UPSTREAM_CLIENT_ID=${named} pasarela webhooks`;
    const ofType = (type: EventType) => registrations.filter(({ webhook }) => webhook.webhookType === type);
    // No other type: beside an older process, which refuses a type that it does not know, it must not be registered yet.
    const types = EVENT_TYPES.filter(
      (type) => [...NEEDED, WANTED].includes(type) || ofType(type).some(({ leads }) => leads !== 'elsewhere'),
    );
    const sync = `${command} sync --types ${types.join(',')}`;
    const look = { found, receiver, checksToken, command, sync, told: new Set<string>() };
    for (const type of NEEDED) lookAtType(type, ofType(type), look);
    if (ofType(WANTED).some(({ isActive }) => isActive)) lookAtType(WANTED, ofType(WANTED), look);
    for (const registration of registrations) lookAtFurther(registration, look);
    if (receiver.older.length > 0) lookAtRotation(rest.clientId, registrations, look);
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
  /** The command for the client's webhooks, without its verb. */
  readonly command: string;
  /** The command that registers the types that are needed, wanted or registered here. */
  readonly sync: string;
  /** Ids of the webhooks that a finding is about already. */
  readonly told: Set<string>;
}

function lookAtType(type: EventType, registrations: readonly Registration[], look: Look): void {
  const { found, command, sync } = look;
  const active = registrations.filter(({ isActive }) => isActive);
  const [first] = active;
  if (first === undefined) {
    const inactive = registrations.find(({ leads }) => leads.startsWith('here'));
    found.failure(
      inactive === undefined
        ? `no ${type} webhook is registered: none of its events arrives`
        : `the ${type} webhook ${inactive.webhook.id} is ${inactive.webhook.webhookStatus}: none of its events arrives`,
      sync,
    );
    if (inactive !== undefined) look.told.add(inactive.webhook.id);
    return;
  }
  if (active.length > 1) {
    const ids = active.map(({ webhook }) => webhook.id).join(', ');
    found.warning(
      `${active.length} ${type} webhooks are active (${ids}): whose answer counts for a credit is not documented`,
      `${command} list, then ${command} remove ID for those that should not be.`,
    );
  }
  const here =
    active.find(({ leads }) => leads === 'here') ?? active.find(({ leads }) => leads.startsWith('here'));
  lookAtOne(here ?? first, look);
}

const nameOf = ({ webhook: { webhookType, id } }: Registration): string => `the ${webhookType} webhook ${id}`;

function lookAtOne(registration: Registration, look: Look): void {
  const { webhook, leads, token } = registration;
  const { found, receiver, checksToken, sync, told } = look;
  const name = nameOf(registration);
  told.add(webhook.id);
  if (leads === 'elsewhere') {
    const where = URL.canParse(webhook.url) ? new URL(webhook.url).origin : 'no address';
    found.failure(
      `${name} leads to ${where}, not to ${withoutUser(receiver.publicUrl).shown}`,
      `${sync} registers this gateway.`,
    );
  } else if (leads === 'here-other-address') {
    found.failure(atOtherAddress(registration), sync);
  } else if (leads === 'here-unsigned') {
    found.failure(byAnother(registration), sync);
  } else if (leads === 'here-unknown-type') {
    found.failure(
      `${name} has the address of a type that this version does not know: its deliveries get 401`,
      sync,
    );
  } else if (checksToken && token === 'other') {
    found.failure(withOtherToken(registration), sync);
  } else if (leads === 'here-older-secret') {
    found.warning(bySecond(registration), `${sync}, before that secret is dropped.`);
  } else if (checksToken && token === 'older') {
    found.warning(withSecondToken(registration), `${sync}, before that secret is dropped.`);
  } else {
    found.ok(`${name} leads here`);
  }
}

const bySecond = (registration: Registration): string =>
  `${nameOf(registration)} is signed with the second WEBHOOK_SECRET`;

const withOtherToken = (registration: Registration): string =>
  `${nameOf(registration)} is registered with a token that the ingress does not accept: 401`;

const withSecondToken = (registration: Registration): string =>
  `${nameOf(registration)} is registered with the token of the second WEBHOOK_SECRET`;

const byAnother = (registration: Registration): string =>
  `${nameOf(registration)} is signed with another WEBHOOK_SECRET: its deliveries get 401`;

const atOtherAddress = (registration: Registration): string =>
  `${nameOf(registration)} has the address of another type or client (${maskIngressUrl(registration.webhook.url)}): its messages are refused there, or kept as that client's`;

/** Looks at a webhook beside the one of its type. What leads elsewhere is not the gateway's. */
function lookAtFurther(registration: Registration, { found, checksToken, command, told }: Look): void {
  const { webhook, leads, token, isActive } = registration;
  if (told.has(webhook.id) || !leads.startsWith('here')) return;
  const remove = `${command} remove ${webhook.id}, unless it is needed.`;
  const isKnown = EVENT_TYPES.some((type) => type === webhook.webhookType);
  const isTakenIn = leads === 'here' || leads === 'here-older-secret';
  if (leads === 'here-other-address' && isActive) {
    found.failure(atOtherAddress(registration), remove);
  } else if (leads === 'here-unsigned' && isActive) {
    found.failure(byAnother(registration), remove);
  } else if (checksToken && token === 'other' && isActive && isTakenIn) {
    found.failure(withOtherToken(registration), remove);
  } else if (!isKnown) {
    found.warning(
      `${nameOf(registration)} leads here, and has a type that this version does not know`,
      `Upgrade every process to a version that knows it, or ${remove}`,
    );
  } else if (leads === 'here-older-secret') {
    found.warning(bySecond(registration), remove);
  } else if (checksToken && token === 'older' && leads === 'here') {
    found.warning(withSecondToken(registration), remove);
  }
}

/** Says that no webhook of the client needs an older secret any more, or why that cannot be said: silence would tell neither. */
function lookAtRotation(
  clientId: string,
  registrations: readonly Registration[],
  { found, checksToken, command, sync }: Look,
): void {
  // One that is switched off and that no secret has signed needs none, and no finding is about it.
  const here = registrations.filter(
    ({ leads, isActive }) => leads.startsWith('here') && (isActive || leads !== 'here-unsigned'),
  );
  if (here.length === 0) {
    found.skipped(`${NOT_DONE}: no webhook of client ${clientId} leads here`, sync);
    return;
  }
  const against = here.flatMap((registration) => obstacleOf(registration, checksToken) ?? []);
  if (against.length > 0) {
    found.skipped(
      `${NOT_DONE} because of ${against.length} of the ${here.length} webhooks of client ${clientId} that lead here: ${against.join('; ')}`,
      `${sync}, then ${command} remove ID for those that are still named and not needed.`,
    );
    return;
  }
  const hidden = checksToken ? here.filter(({ token }) => token === 'unknown').length : 0;
  found.ok(
    `all ${here.length} webhooks of client ${clientId} that lead here are signed with the first WEBHOOK_SECRET: ${
      hidden === 0
        ? 'the second serves deliveries alone that the provider repeats'
        : `the service does not show the token of ${hidden}, and pasarela_events_older_secret_total rises where that is still the second's`
    }`,
  );
}

const NOT_DONE = 'the rotation of WEBHOOK_SECRET is not called done';

/** Returns why a webhook that leads here keeps the rotation from being called done; undefined if it does not. */
function obstacleOf(registration: Registration, checksToken: boolean): string | undefined {
  const { webhook, leads, token, isActive } = registration;
  const name = isActive ? nameOf(registration) : `${nameOf(registration)} (${webhook.webhookStatus})`;
  if (leads === 'here-older-secret') return `${name} is signed with the second`;
  if (leads === 'here-unsigned') return `${name} is signed with another secret`;
  if (leads === 'here-other-address') return `${name} has the address of another type or client`;
  if (leads !== 'here') return `${name} has the address of a type that this version does not know`;
  if (checksToken && token === 'older') return `${name} is registered with the token of the second`;
  if (checksToken && token === 'other') return `${name} is registered with a token of neither`;
  return undefined;
}
