import type { Context } from '../context.ts';
import type { Webhook } from '../upstream/webhooks.ts';
import type { MaybePromise } from '../upstream/whole-list.ts';
import { argumentId } from './ids.ts';
import { openEnum } from './open-enum.ts';

export const webhookType = openEnum('WebhookType', ['MONEY_IN', 'STATUS_UPDATE', 'CEP']);
export const webhookStatus = openEnum('WebhookStatus', ['ACTIVE', 'INACTIVE']);

/** @throws BadInputError for an id that cannot be one. */
export const webhook = (id: string, context: Context): MaybePromise<Webhook | null> =>
  context.session.webhooks.find('id', argumentId('id', 'id', id));
