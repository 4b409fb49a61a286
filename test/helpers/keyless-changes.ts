import { randomUUID } from 'node:crypto';

// biome-ignore lint/suspicious/noExplicitAny: what the sandbox says of itself, and the id of a webhook.
type World = any;

export interface KeylessChange {
  readonly name: string;
  /** As docs/upstream-api.md writes it. */
  readonly route: string;
  /** An input that the sandbox accepts, each time that it is made. */
  readonly input: (world: World) => object;
  /** Whether it is sent again after any 401, as twice does no harm. */
  readonly isRenewed?: true;
}

const account = ({ bankIds, clientBankAdapterId }: World) => ({ bankId: bankIds[0], clientBankAdapterId });
const url = (): string => `https://example.mx/${randomUUID()}`;

/** Each change of the graph that takes no idempotency key. `test/resolvers/changes.test.ts` asks for them. */
export const KEYLESS_CHANGES: readonly KeylessChange[] = [
  {
    name: 'createPrivateAccount',
    route: 'POST /v1/clients/{clientId}/private_accounts',
    input: (world) => ({ ...account(world), ownerId: world.clientId, accountId: randomUUID() }),
  },
  {
    name: 'createCustomerPrivateAccount',
    route: 'POST /v1/clients/{clientId}/customers/{customerId}/private_accounts',
    input: (world) => ({
      ...account(world),
      customerId: world.customerIds[0],
      ownerId: world.customerIds[0],
    }),
  },
  {
    name: 'registerInstrument',
    route: 'POST /v1/clients/{clientId}/instruments',
    input: ({ bankIds }) => ({
      sourceBankId: bankIds[0],
      alias: 'a',
      receiver: {
        debitCard: { destinationBankId: bankIds[1], cardNumber: '4111111111111111', holderName: 'h' },
      },
    }),
  },
  {
    name: 'createWebhook',
    route: 'POST /v1/clients/{clientId}/webhooks',
    input: () => ({ type: 'CEP', url: url() }),
  },
  {
    name: 'createLegacyWebhook',
    route: 'POST /v1/webhooks',
    input: () => ({ type: 'STATUS_UPDATE', url: url(), token: 'a token' }),
  },
  {
    name: 'updateWebhook',
    route: 'PATCH /v1/clients/{clientId}/webhooks/{id}',
    input: ({ webhookId }) => ({ id: webhookId, url: url() }),
    isRenewed: true,
  },
  {
    name: 'deleteWebhook',
    route: 'DELETE /v1/clients/{clientId}/webhooks/{id}',
    input: ({ webhookId }) => ({ id: webhookId }),
    isRenewed: true,
  },
];

const capital = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;

/** The document of a change, with its field called `result`. */
export const documentOf = (name: string, selection = ''): string =>
  `mutation ($input: ${capital(name)}Input!) { result: ${name}(input: $input) { __typename ${selection} } }`;

/** Matches each path of a route, in a fault of the sandbox. */
export const matchOf = (route: string): { readonly method: string; readonly path: string } => {
  const [method = '', path = ''] = route.split(' ');
  return { method, path: path.replaceAll(/\{\w+\}/g, '*') };
};
