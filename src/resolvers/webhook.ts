import { entropy } from '../common/entropy.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { EVENT_TYPES, type EventType } from '../events/log.ts';
import type { Context } from '../operation/context.ts';
import { identified, isObject, type JsonObject } from '../upstream/call/json.ts';
import type { Webhook, WebhookBody, WebhookChanges } from '../upstream/webhooks.ts';
import * as upstream from '../upstream/webhooks.ts';
import { ConflictError, NotFoundError, RefusedError, ValidationError } from './errors.ts';
import { argumentId, filled, inputId } from './ids.ts';
import { openEnum } from './open-enum.ts';
import { type SendOnce, successOf } from './outcome.ts';
import { invalid as invalidPart, textOf } from './values.ts';

export const webhookType = openEnum('WebhookType', EVENT_TYPES);
export const webhookStatus = openEnum('WebhookStatus', ['ACTIVE', 'INACTIVE']);

/** @throws BadInputError for an id that cannot be one. */
export const webhook = (id: string, context: Context): MaybePromise<Webhook | null> =>
  context.reads.session.webhooks.find('id', argumentId('id', 'id', id));

/**
 * Address of a webhook, which is always there (docs/upstream-api.md, "Webhook").
 *
 * @throws UpstreamError `UPSTREAM_INVALID` where it is not.
 */
export function webhookUrl({ url }: Webhook): string {
  const address = textOf(url, 'url');
  if (address === null) throw invalidPart('url', 'is missing');
  return address;
}

/** True if the gateway takes in the webhook's messages at the address of its own client and type. */
export function feedsGateway(parent: Webhook, _args: unknown, { services, reads }: Context): boolean {
  const target = services.ingress.target(webhookUrl(parent));
  return target?.clientId === reads.session.clientId && target.type === parent.webhookType;
}

export interface CreateWebhookInput {
  readonly type: EventType;
  readonly url?: string | null | undefined;
  readonly token?: string | null | undefined;
  readonly authType?: string | null | undefined;
}

export interface UpdateWebhookInput {
  readonly id: string;
  readonly url?: string | null | undefined;
  readonly token?: string | null | undefined;
  readonly status?: 'ACTIVE' | 'INACTIVE' | null | undefined;
  readonly authType?: string | null | undefined;
  readonly auth?: JsonObject | null | undefined;
}

export interface CreatedWebhook {
  readonly webhook: Webhook;
  /** The secret of the registration, shown this once. */
  readonly token: string;
}

/** What the samples of the spec send (docs/upstream-api.md, endpoint 17). */
const DEFAULT_AUTH_TYPE = 'AUTH';
const TOKEN_BYTES = 32;

const CREATE_RULES: SendOnce = { members: [ValidationError, ConflictError, RefusedError], unclear: 'data' };
const CHANGE_RULES: SendOnce = {
  members: [ValidationError, NotFoundError, ConflictError, RefusedError],
  unclear: 'error',
};

const readWebhook = (body: unknown): Webhook | undefined =>
  isObject(body) &&
  ['id', 'url', 'webhookType', 'webhookStatus'].every((field) => typeof body[field] === 'string')
    ? identified<Webhook>(body, 'a webhook')
    : undefined;

const invalid = (field: readonly string[], message: string): ValidationError =>
  new ValidationError('INVALID_INPUT', message, { field });

/** @throws ValidationError for an address of a gateway at which nothing is taken in: as `Webhook.url` shows it, or the own one in part. */
function assertWhole(url: string | null | undefined, { services: { ingress } }: Context): void {
  if (url == null) return;
  if (ingress.isMasked(url)) {
    throw invalid(
      ['input', 'url'],
      'input.url has *** in place of its signature, as Webhook.url shows it. No delivery to it would be taken in: leave it out, or give the whole address.',
    );
  }
  if (ingress.isOwn(url) && ingress.target(url) === undefined) {
    throw invalid(
      ['input', 'url'],
      "input.url leads to this gateway, which would take no delivery in there: its signature is not the gateway's, or something follows it, such as a query. createWebhook without input.url fills in the right address.",
    );
  }
}

const LEAVE_OUT =
  "input.token must be left out for a webhook that feeds this gateway: its receiver checks the gateway's own.";
const USE_CREATE =
  'input.token is not the one that this gateway checks of a webhook that feeds it: use createWebhook, without url and token.';

/**
 * Returns the token of a webhook at this address: where it feeds the gateway, the one that the ingress can check, as another
 * would have every delivery refused. Undefined for any other address.
 *
 * @param given what the input has of address and token.
 * @param advice what is told of a token that is another.
 * @throws ValidationError where the gateway would take no delivery in.
 */
function ownToken(
  { url, type }: { readonly url: string; readonly type: string },
  given: Pick<UpdateWebhookInput, 'url' | 'token'>,
  { services: { ingress }, reads: { session } }: Context,
  advice = LEAVE_OUT,
): string | undefined {
  const target = ingress.target(url);
  if (target === undefined) return undefined;
  if (target.clientId !== session.clientId || target.type !== type) {
    throw invalid(
      ['input', given.url == null ? 'token' : 'url'],
      "The address is the gateway's own of another type or client, where no delivery would be taken in: createWebhook without input.url fills in the right one.",
    );
  }
  const own = ingress.token(session.clientId, target.type);
  if (given.token != null && given.token !== own) throw invalid(['input', 'token'], advice);
  return own;
}

function registration(input: CreateWebhookInput, context: Context, advice?: string): WebhookBody {
  const { services, reads } = context;
  const { ingress } = services;
  assertWhole(input.url, context);
  const { clientId } = reads.session;
  const token = filled(['input', 'token'], input.token);
  const authType = filled(['input', 'authType'], input.authType);
  const url = input.url ?? ingress.url(clientId, input.type);
  if (url === undefined) {
    throw invalid(
      ['input', 'url'],
      'input.url must be given: the gateway does not know the address at which it is reached itself, as PUBLIC_URL is not set.',
    );
  }
  const own = ownToken({ url, type: input.type }, { url: input.url, token }, context, advice);
  return {
    client_id: clientId,
    url,
    token: token ?? own ?? entropy.bytes(TOKEN_BYTES).toString('base64url'),
    webhook_type: input.type,
    auth_type: authType ?? DEFAULT_AUTH_TYPE,
  };
}

async function create(
  send: typeof upstream.createWebhook,
  input: CreateWebhookInput,
  context: Context,
  advice?: string,
): Promise<CreatedWebhook> {
  const body = registration(input, context, advice);
  const attempt = await send(context.reads.session.rest, body);
  context.reads.forget();
  return { webhook: successOf(attempt, readWebhook, CREATE_RULES), token: body.token };
}

/** Registers a webhook (docs/upstream-api.md, endpoint 17). Sent once. */
export const createWebhook = (input: CreateWebhookInput, context: Context): Promise<CreatedWebhook> =>
  create(upstream.createWebhook, input, context);

/** Registers a webhook in the way that the upstream deprecates (docs/upstream-api.md, endpoint 19). Sent once. */
export const createLegacyWebhook = (input: CreateWebhookInput, context: Context): Promise<CreatedWebhook> =>
  create(upstream.createLegacyWebhook, input, context, USE_CREATE);

const AUTH_FIELD = /^auth_[a-z0-9_]{1,64}$/;

function changesOf(input: UpdateWebhookInput): WebhookChanges {
  const auth = Object.entries(input.auth ?? {});
  const other = auth.find(([name]) => !AUTH_FIELD.test(name));
  if (other !== undefined) {
    throw invalid(['input', 'auth'], 'input.auth may hold only fields whose names begin with auth_.');
  }
  const changes = Object.entries({
    url: input.url,
    token: filled(['input', 'token'], input.token),
    webhook_status: input.status,
    auth_type: filled(['input', 'authType'], input.authType),
  }).filter(([, value]) => value != null);
  if (changes.length + auth.length === 0) {
    throw invalid(['input'], 'input must hold something to change besides the id.');
  }
  return Object.fromEntries([...auth, ...changes]);
}

/**
 * The token that a changed webhook has to have, as {@link ownToken}. The webhook is read only where the change may have its deliveries
 * refused; one that is not listed is left to the service.
 */
async function ownTokenOf(
  id: string,
  { url, token }: UpdateWebhookInput,
  context: Context,
): Promise<string | undefined> {
  const { services, reads } = context;
  if (url == null ? token == null : services.ingress.target(url) === undefined) return undefined;
  const webhook = await reads.session.webhooks.find('id', id);
  if (webhook === null) return undefined;
  return ownToken({ url: url ?? webhookUrl(webhook), type: webhook.webhookType }, { url, token }, context);
}

/** Whatever body a 2xx has: that of this answer is not shown (docs/upstream-api.md, endpoint 18). */
const anyBody = (): true => true;

/** Changes a webhook (docs/upstream-api.md, endpoint 18). Sent once; the same change again does no harm. */
export async function updateWebhook(
  input: UpdateWebhookInput,
  context: Context,
): Promise<{ readonly id: string }> {
  const id = inputId(['input', 'id'], 'id', input.id);
  assertWhole(input.url, context);
  const changes = changesOf(input);
  const own = await ownTokenOf(id, input, context);
  const attempt = await upstream.updateWebhook(
    context.reads.session.rest,
    id,
    own === undefined ? changes : { ...changes, token: own },
  );
  context.reads.forget();
  successOf(attempt, anyBody, CHANGE_RULES);
  return { id };
}

/** Deletes a webhook softly (docs/upstream-api.md, endpoint 18). Sent once. */
export async function deleteWebhook(id: string, context: Context): Promise<{ readonly id: string }> {
  const attempt = await upstream.deleteWebhook(
    context.reads.session.rest,
    inputId(['input', 'id'], 'id', id),
  );
  context.reads.forget();
  successOf(attempt, anyBody, CHANGE_RULES);
  return { id };
}
