import { z } from 'zod';
import type { RestAnswers } from '../endpoints.ts';
import { notFound } from '../errors.ts';
import { type App, answer, type Ctx, operation, pathId, readBody, uuid } from '../http.ts';
import { checkOwnClient } from '../operations/requests.ts';
import { addWebhook, checkHost, webhookFields } from '../operations/webhooks.ts';
import { cutPage } from '../paging.ts';
import type { RestNewWebhook, RestWebhookChange } from '../rest.ts';
import type { Webhook } from '../state.ts';
import { viewWebhook } from '../views.ts';
import type { World } from '../world.ts';

const { url, token, type } = webhookFields;

const creation = z.object({
  client_id: uuid,
  url,
  token,
  webhook_type: type,
  auth_type: z.string().optional(),
}) satisfies z.ZodType<RestNewWebhook>;

const legacyCreation = creation.extend({ webhook_type: z.enum(['MONEY_IN', 'STATUS_UPDATE']) });

const change = z.object({
  url: url.optional(),
  token: token.optional(),
  webhook_status: z.enum(['ACTIVE', 'INACTIVE']).optional(),
  auth_type: z.string().optional(),
}) satisfies z.ZodType<RestWebhookChange>;

/** Endpoints 16 to 19. */
export function webhookRoutes(app: App, world: World): void {
  listRoutes(app, world);
  oneWebhookRoutes(app, world);
}

/** Endpoints 16, 17 and 19: the list, and what is added to it. */
function listRoutes(app: App, world: World): void {
  const { state, choices } = world;

  app.get('/v1/clients/:clientId/webhooks', operation('Webhooks', 'ListWebhooks'), (c) => {
    const webhooks = state.webhooks
      .made(c.get('clientId'))
      .filter(({ deletedAt }) => choices.deletedWebhooksListed || deletedAt === undefined);
    const { page, size, total, items } = cutPage(c, webhooks, choices.openListPage);
    const data = items.map((webhook) => viewWebhook(world, webhook));
    return answer<RestAnswers['GET /v1/clients/{clientId}/webhooks']>(c, world, {
      currentPage: page,
      perPage: size,
      totalItem: total,
      data,
    });
  });

  app.post('/v1/clients/:clientId/webhooks', operation('Webhooks', 'CreateWebhook'), async (c) =>
    create(world, c, await readBody(c, creation)),
  );

  app.post('/v1/webhooks', operation('Webhooks', 'CreateLegacyWebhook'), async (c) =>
    create(world, c, await readBody(c, legacyCreation)),
  );
}

/** Endpoint 18: of a webhook that there is. */
function oneWebhookRoutes(app: App, world: World): void {
  const { choices, clock } = world;
  const one = '/v1/clients/:clientId/webhooks/:id';

  app.get(one, operation('Webhooks', 'GetWebhook'), (c) => {
    const view = viewWebhook(world, find(world, c));
    return answer(c, world, choices.webhookAnswers === 'wrapped' ? { data: view } : view);
  });

  app.patch(one, operation('Webhooks', 'UpdateWebhook'), async (c) => {
    const body = await readBody(c, change);
    if (body.url !== undefined) checkHost(world, body.url);
    const webhook = find(world, c);
    webhook.url = body.url ?? webhook.url;
    webhook.token = body.token ?? webhook.token;
    webhook.status = body.webhook_status ?? webhook.status;
    webhook.authType = body.auth_type ?? webhook.authType;
    webhook.updatedAt = clock.now();
    return choices.webhookAnswers === 'wrapped'
      ? c.body(null, 204)
      : answer<RestAnswers['PATCH /v1/clients/{clientId}/webhooks/{id}']>(
          c,
          world,
          viewWebhook(world, webhook),
        );
  });

  app.delete(one, operation('Webhooks', 'DeleteWebhook'), (c) => {
    const webhook = find(world, c);
    webhook.deletedAt = clock.now();
    webhook.updatedAt = webhook.deletedAt;
    webhook.deletedBy = webhook.clientId;
    webhook.status = 'INACTIVE';
    return choices.webhookAnswers === 'wrapped'
      ? answer(c, world, { message: 'Webhook deleted' })
      : c.body(null, 204);
  });
}

function create(world: World, c: Ctx, body: z.infer<typeof creation>): Response {
  const clientId = c.get('clientId');
  checkOwnClient(world, clientId, body.client_id);
  const { url, token, webhook_type, auth_type } = body;
  const webhook = addWebhook(world, clientId, { url, token, type: webhook_type, authType: auth_type });
  return answer<RestAnswers['POST /v1/clients/{clientId}/webhooks']>(
    c,
    world,
    viewWebhook(world, webhook),
    world.choices.webhookCreated,
  );
}

function find({ state }: World, c: Ctx): Webhook {
  const webhook = state.webhooks.get(pathId(c, 'id'));
  if (webhook?.clientId !== c.get('clientId') || webhook.deletedAt !== undefined) {
    throw notFound('webhook_not_found');
  }
  return webhook;
}
