import type { Attempt } from './call/http.ts';
import { identified, type Optional } from './call/json.ts';
import type { Rest, RestChanges } from './call/rest.ts';
import type { ListDefinition } from './lists/reader.ts';
import { readWholeList } from './lists/whole-list.ts';

/** A registered receiver of notifications (docs/upstream-api.md, "Webhook"). */
export interface Webhook {
  readonly id: string;
  readonly clientId?: Optional;
  readonly url: string;
  /** The secret of the registration. Never shown by the graph. */
  readonly token?: Optional;
  readonly webhookType: string;
  readonly authType?: Optional;
  readonly webhookStatus: string;
  readonly createdAt?: Optional;
  readonly updatedAt?: Optional;
  readonly deletedAt?: Optional;
  readonly blockedAt?: Optional;
  readonly deletedBy?: Optional;
  readonly blockedBy?: Optional;
}

export interface WebhookBody {
  readonly client_id: string;
  readonly url: string;
  readonly token: string;
  readonly webhook_type: string;
  readonly auth_type?: string;
}

/** Only the fields that change. Further `auth_…` fields, which the documentation does not show, are passed through. */
export type WebhookChanges = Readonly<Record<string, unknown>>;

export const WEBHOOKS = '/v1/clients/{clientId}/webhooks';
export const WEBHOOK = '/v1/clients/{clientId}/webhooks/{id}';
const LEGACY_WEBHOOKS = '/v1/webhooks';

const WEBHOOK_LIST: ListDefinition<Webhook> = {
  route: WEBHOOKS,
  envelope: {
    items: 'data',
    total: 'totalItem',
    page: 'currentPage',
    size: 'perPage',
    pageParameter: 'page',
    sizeParameter: 'per_page',
  },
  keys: ['id'],
  identify: (item) => identified<Webhook>(item, 'a webhook'),
  mayRepeatIds: true,
};

/**
 * Reads all webhooks of the client (docs/upstream-api.md, endpoint 16). The reads of one webhook are not used, because their
 * answers are not documented.
 */
export const readWebhooks = (rest: Rest): Promise<readonly Webhook[]> => readWholeList(rest, WEBHOOK_LIST);

/** Registers a webhook (docs/upstream-api.md, endpoint 17). */
export const createWebhook = (rest: RestChanges, body: WebhookBody): Promise<Attempt> =>
  rest.send('POST', WEBHOOKS, { body: JSON.stringify(body) });

/** Changes a webhook partially (docs/upstream-api.md, endpoint 18). */
export const updateWebhook = (rest: RestChanges, id: string, changes: WebhookChanges): Promise<Attempt> =>
  rest.send('PATCH', WEBHOOK, { params: { id }, body: JSON.stringify(changes), mayRenew: always });

/** Deletes a webhook softly (docs/upstream-api.md, endpoint 18). */
export const deleteWebhook = (rest: RestChanges, id: string): Promise<Attempt> =>
  rest.send('DELETE', WEBHOOK, { params: { id }, mayRenew: always });

/** Whoever has given the 401: the same change again does no harm. */
const always = (): boolean => true;

/** Registers a webhook in the deprecated way (docs/upstream-api.md, endpoint 19). */
export const createLegacyWebhook = (rest: RestChanges, body: WebhookBody): Promise<Attempt> =>
  rest.send('POST', LEGACY_WEBHOOKS, { body: JSON.stringify(body) });
