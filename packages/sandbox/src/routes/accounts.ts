import { z } from 'zod';
import type { RestAnswers } from '../endpoints.ts';
import { dataError, notFound } from '../errors.ts';
import { type App, answer, operation, pathId, readBody, uuid } from '../http.ts';
import { openAccount } from '../operations/accounts.ts';
import { checkOwnClient } from '../operations/requests.ts';
import { cutPage } from '../paging.ts';
import type { RestNewAccount } from '../rest.ts';
import type { Customer } from '../state.ts';
import { viewAccount, viewListedAccount } from '../views.ts';
import type { World } from '../world.ts';

const clientAccount = z.object({
  bank_id: uuid,
  owner_id: uuid,
  client_bank_adapter_id: uuid,
  client_id: uuid,
  account_id: uuid,
}) satisfies z.ZodType<RestNewAccount>;

const customerAccount = clientAccount.partial();

/** Endpoints 4, 5 and 6. */
export function accountRoutes(app: App, world: World): void {
  const { state, choices } = world;

  app.get('/v1/clients/:clientId/accounts', operation('Accounts', 'ListAccounts'), (c) => {
    const clientId = c.get('clientId');
    const accounts = choices.accountsIncludeCustomers
      ? state.accounts.ofClient(clientId)
      : state.accounts.made(clientId).filter(({ ownerType }) => ownerType === 'CLIENT');
    const { page, size, total, items } = cutPage(c, accounts, choices.openListPage);
    const data = items.map((account) => viewListedAccount(world, account));
    return answer<RestAnswers['GET /v1/clients/{clientId}/accounts']>(c, world, {
      currentPage: page,
      perPage: size,
      totalItem: total,
      data,
    });
  });

  app.post(
    '/v1/clients/:clientId/private_accounts',
    operation('Accounts', 'CreatePrivateAccount'),
    async (c) => {
      const clientId = c.get('clientId');
      const body = await readBody(c, clientAccount);
      checkOwnClient(world, clientId, body.client_id);
      const ownerId = body.owner_id.toLowerCase();
      const customer = ownerId === clientId ? undefined : findCustomer(world, clientId, ownerId);
      if (ownerId !== clientId && customer === undefined) throw notFound('owner_not_found');
      return answer<RestAnswers['POST /v1/clients/{clientId}/private_accounts']>(
        c,
        world,
        open(world, clientId, customer, body),
        201,
      );
    },
  );

  app.post(
    '/v1/clients/:clientId/customers/:customerId/private_accounts',
    operation('Accounts', 'CreateCustomerPrivateAccount'),
    async (c) => {
      const clientId = c.get('clientId');
      const body = await readBody(c, customerAccount);
      for (const field of choices.customerAccountRequires) {
        if (body[field] === undefined) throw dataError(`body.${field}: required`);
      }
      if (body.client_id !== undefined) checkOwnClient(world, clientId, body.client_id);
      const customer = findCustomer(world, clientId, pathId(c, 'customerId'));
      if (customer === undefined) throw notFound('customer_not_found');
      if (body.owner_id !== undefined && body.owner_id.toLowerCase() !== customer.id) {
        throw dataError('body.owner_id: the owner of the account is the customer in the path.');
      }
      return answer<RestAnswers['POST /v1/clients/{clientId}/customers/{customerId}/private_accounts']>(
        c,
        world,
        open(world, clientId, customer, body),
        200,
      );
    },
  );
}

function findCustomer(world: World, clientId: string, id: string): Customer | undefined {
  const customer = world.state.customers.get(id);
  return customer?.clientId === clientId ? customer : undefined;
}

function open(
  world: World,
  clientId: string,
  customer: Customer | undefined,
  body: z.infer<typeof customerAccount>,
) {
  const client = world.state.clients.get(clientId);
  const holder = customer ?? client;
  if (client === undefined || holder === undefined) throw notFound('client_not_found');
  const bankId = body.bank_id?.toLowerCase();
  if (bankId !== undefined && !world.state.banks.has(bankId)) throw notFound('bank_not_found');
  const { account } = openAccount(world, {
    clientId,
    customerId: customer?.id,
    bankId,
    adapterId: body.client_bank_adapter_id ?? client.adapterId,
    requestedId: body.account_id,
    alias: `Cuenta de ${holder.name}`,
    accountType: 'PRIVATE_ACCOUNT',
    holder: { name: holder.name, rfc: holder.rfc },
  });
  return viewAccount(world, account);
}
