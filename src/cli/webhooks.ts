import { readEnvironment } from '../app/config.ts';
import type { Variables } from '../app/variables.ts';
import { EVENT_TYPES, type EventType } from '../events/log.ts';
import { ingressToken, ingressUrl, maskIngressUrl } from '../ingress/addresses.ts';
import { errorOfAnswer } from '../upstream/call/errors.ts';
import type { Attempt } from '../upstream/call/http.ts';
import type { Rest } from '../upstream/call/rest.ts';
import { createWebhook, deleteWebhook, readWebhooks, updateWebhook } from '../upstream/webhooks.ts';
import {
  type Command,
  CommandError,
  EXIT,
  notAVerb,
  print,
  readArguments,
  refuseArguments,
  remark,
  UsageError,
} from './command.ts';
import { type Receiver, type Registration, readRegistrations } from './registrations.ts';
import { withUpstream } from './upstream.ts';

/** Shows the webhooks that are registered at the provider, and corrects them. */
export const webhooks: Command = {
  help: `Usage: pasarela webhooks list [--json]
       pasarela webhooks sync [--types CEP,MONEY_IN] [--dry-run] [--json]
       pasarela webhooks remove ID… [--json]

  list     every webhook of the client, with whether it feeds this gateway. Signatures are masked, tokens not shown.
  sync     sees to it that each type has an active webhook that leads here, signed with the first WEBHOOK_SECRET: makes
           the one that is missing, and corrects one that leads here with an older secret, another token, INACTIVE, or at
           the address of another type or client. It runs as often as you like, and touches no webhook that leads
           elsewhere.
  remove   deletes webhooks by id (softly, as the service does).

  --types     of ${EVENT_TYPES.join(', ')}, comma-separated; default all
  --dry-run   says what sync would do, and does nothing
  --json      prints the result as JSON

  pasarela webhooks sync --dry-run     before the first sync

UPSTREAM_URL, PUBLIC_URL and WEBHOOK_SECRET are those of the gateway. With AUTH_MODE=service its own credentials are used,
otherwise PASARELA_TOKEN: an access token of the service.

Exit codes: 0 done; 1 the service refused or could not be asked; 2 the command line is not understood.`,
  async run(args) {
    const [verb, ...rest] = args;
    if (verb === 'list') return list(rest);
    if (verb === 'sync') return sync(rest);
    if (verb === 'remove') return remove(rest);
    throw notAVerb(verb, ['list', 'sync', 'remove']);
  },
};

/** Returns the gateway as a receiver of webhooks; undefined if the gateway does not know its own address. */
export function receiverOf({
  PUBLIC_URL: publicUrl,
  WEBHOOK_SECRET: secrets,
}: Variables): Receiver | undefined {
  if (publicUrl === undefined || secrets === undefined) return undefined;
  const [signing, ...older] = secrets.map((secret) => secret.reveal());
  return signing === undefined ? undefined : { publicUrl, signing, older };
}

async function list(args: readonly string[]): Promise<0> {
  const { values, positionals } = readArguments(args, { json: { type: 'boolean' } });
  refuseArguments(positionals);
  const variables = readEnvironment();
  const found = await withUpstream(variables, async (rest) =>
    readRegistrations(rest.clientId, await readWebhooks(rest), receiverOf(variables)),
  );
  if (values.json === true) print(JSON.stringify(found.map(shown), undefined, 2));
  else if (found.length === 0) print('No webhook is registered.');
  else for (const registration of found) print(line(registration));
  return EXIT.done;
}

/** Returns a registration without its secrets. */
const shown = ({ webhook, leads }: Registration) => ({
  id: webhook.id,
  type: webhook.webhookType,
  status: webhook.webhookStatus,
  url: maskIngressUrl(webhook.url),
  leads,
});

const LEADS: Readonly<Record<Registration['leads'], string>> = {
  here: 'feeds this gateway',
  'here-older-secret': 'feeds this gateway, signed with the older secret',
  'here-other-address': 'leads to this gateway, at the address of another type or client',
  'here-unsigned': 'leads to this gateway, which refuses it: signed with another secret',
  'here-unknown-type': 'leads to this gateway, which refuses it: this version does not know its type',
  elsewhere: 'leads elsewhere',
  unknown: 'PUBLIC_URL or WEBHOOK_SECRET is not set, so that it is not known whether it leads here',
};

function line(registration: Registration): string {
  const { id, type, status, url, leads } = shown(registration);
  return `${id}  ${type.padEnd(13)} ${status.padEnd(8)}  ${url}\n    ${LEADS[leads]}`;
}

interface Step {
  readonly type: EventType;
  readonly action: 'none' | 'create' | 'update';
  readonly id?: string;
}

/**
 * Returns the step after which a type has an active webhook that leads here. It changes the existing webhook that needs the
 * least change.
 */
function stepFor(type: EventType, found: readonly Registration[]): Step {
  const here = found.filter(({ webhook, leads }) => webhook.webhookType === type && leads.startsWith('here'));
  const right = here.find(
    ({ leads, token, isActive }) => leads === 'here' && ['first', 'unknown'].includes(token) && isActive,
  );
  const nearest = here.find(({ isActive }) => isActive) ?? here[0];
  if (right !== undefined) return { type, action: 'none', id: right.webhook.id };
  return nearest === undefined
    ? { type, action: 'create' }
    : { type, action: 'update', id: nearest.webhook.id };
}

async function sync(args: readonly string[]): Promise<0> {
  const { values, positionals } = readArguments(args, {
    types: { type: 'string' },
    'dry-run': { type: 'boolean' },
    json: { type: 'boolean' },
  });
  refuseArguments(positionals);
  const types = values.types === undefined ? EVENT_TYPES : readTypes(values.types);
  const variables = readEnvironment();
  const receiver = receiverOf(variables);
  if (receiver === undefined) {
    throw new CommandError(
      'PUBLIC_URL and WEBHOOK_SECRET must be set, as they are for the gateway: the addresses follow from them.',
    );
  }
  const isDry = values['dry-run'] === true;
  const { steps, failures } = await withUpstream(variables, async (rest) => {
    const found = readRegistrations(rest.clientId, await readWebhooks(rest), receiver);
    const planned = types.map((type) => stepFor(type, found));
    const result = isDry ? { steps: planned, failures: [] } : await takeAll(planned, rest, receiver);
    for (const { webhook, isActive } of found) {
      const isOther = !planned.some(({ id }) => id === webhook.id);
      if (isActive && isOther && types.some((type) => type === webhook.webhookType)) {
        remark(
          `Another ${webhook.webhookType} webhook is active, ${webhook.id}: pasarela webhooks list shows it.`,
        );
      }
    }
    return result;
  });
  if (values.json === true) print(JSON.stringify(steps, undefined, 2));
  else for (const step of steps) print(told(step, isDry));
  const last = failures.at(-1);
  for (const { message } of failures.slice(0, -1)) remark(message);
  if (last !== undefined) throw last;
  return EXIT.done;
}

function told({ type, action, id }: Step, isDry: boolean): string {
  const done = { none: 'is right', create: 'was made', update: 'was mended' } as const;
  const planned = { none: 'is right', create: 'would be made', update: 'would be mended' } as const;
  return `${type}: ${(isDry ? planned : done)[action]}${id === undefined ? '' : ` (${id})`}`;
}

interface Taken {
  readonly steps: readonly Step[];
  readonly failures: readonly CommandError[];
}

/** Takes each step, also behind one that fails. @returns those that were taken, and why others were not */
async function takeAll(planned: readonly Step[], rest: Rest, receiver: Receiver): Promise<Taken> {
  const steps: Step[] = [];
  const failures: CommandError[] = [];
  for (const step of planned) {
    if (step.action !== 'none') remark(`${step.type}: ${step.action}…`);
    try {
      await take(step, rest, receiver);
      steps.push(step);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      failures.push(error);
    }
  }
  return { steps, failures };
}

async function take({ type, action, id }: Step, rest: Rest, receiver: Receiver): Promise<void> {
  if (action === 'none') return;
  const url = ingressUrl(receiver.publicUrl, rest.clientId, type, receiver.signing);
  const token = ingressToken(rest.clientId, type, receiver.signing);
  const attempt =
    id === undefined
      ? await createWebhook(rest, {
          client_id: rest.clientId,
          url,
          token,
          webhook_type: type,
          auth_type: 'AUTH',
        })
      : await updateWebhook(rest, id, { url, token, webhook_status: 'ACTIVE' });
  mustSucceed(attempt, `${type} webhook`);
}

async function remove(args: readonly string[]): Promise<0> {
  const { values, positionals } = readArguments(args, { json: { type: 'boolean' } });
  if (positionals.length === 0)
    throw new UsageError('remove needs the ids of webhooks: pasarela webhooks list shows them');
  await withUpstream(readEnvironment(), async (rest) => {
    const known = new Set((await readWebhooks(rest)).map(({ id }) => id));
    const unknown = positionals.filter((id) => !known.has(id));
    if (unknown.length > 0)
      throw new CommandError(`No webhook has the id ${unknown.join(', ')}. Nothing was removed.`);
    // Told at the end: a reader that has gone ends the command at the first line that nobody takes.
    const removed: string[] = [];
    try {
      for (const id of positionals) {
        mustSucceed(await deleteWebhook(rest, id), `webhook ${id}`);
        removed.push(id);
      }
    } finally {
      if (values.json !== true) for (const id of removed) print(`${id}: was removed`);
    }
  });
  if (values.json === true) print(JSON.stringify({ removed: positionals }, undefined, 2));
  return EXIT.done;
}

function readTypes(text: string): readonly EventType[] {
  return text.split(',').map((part) => {
    const type = EVENT_TYPES.find((known) => known === part.trim());
    if (type === undefined) throw new UsageError(`--types got "${part}", wants of ${EVENT_TYPES.join(', ')}`);
    return type;
  });
}

function mustSucceed(attempt: Attempt, what: string): void {
  if (attempt.kind === 'answered' && attempt.status >= 200 && attempt.status < 300) return;
  const { message } = attempt.kind === 'failed' ? attempt.error : errorOfAnswer(attempt);
  throw new CommandError(`The ${what} could not be changed: ${message}`);
}
