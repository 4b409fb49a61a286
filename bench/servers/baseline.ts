/**
 * The baseline: what a frontend team would write by hand instead of a graph. One endpoint per screen, the REST calls of it
 * in parallel, joined with Maps. With `--cached-banks` it also keeps the bank catalog, as the gateway does.
 */
import { createServer } from 'node:http';
import { announce } from '../lib/announce.ts';
import { openUpstream, type Rest } from './rest.ts';
import type { Account, Bank, Customer, Instrument, Items, Transaction } from './shapes.ts';

const [origin = '', option] = process.argv.slice(2);
const restOf = openUpstream(origin);

let kept: readonly Bank[] | undefined;

async function readBanks(rest: Rest): Promise<readonly Bank[]> {
  if (kept !== undefined) return kept;
  const { banks } = await rest.get<{ banks: Bank[] }>('/v1/banks');
  if (option === '--cached-banks') kept = banks;
  return banks;
}

async function join(rest: Rest, first: number): Promise<object> {
  const base = `/v1/clients/${rest.clientId}`;
  const [banks, instruments, customers, accounts] = await Promise.all([
    readBanks(rest),
    rest.get<Items<Instrument>>(`${base}/instruments?page=1&per_page=${first}`),
    rest.get<Items<Customer>>(`${base}/customers`),
    rest.get<Items<Account>>(`${base}/accounts`),
  ]);
  const bankById = new Map(banks.map((bank) => [bank.id, bank]));
  const customerById = new Map(customers.data.map((customer) => [customer.id, customer]));
  const accountByOwner = new Map<string, Account>();
  for (const account of accounts.data) {
    if (!accountByOwner.has(account.ownerId)) accountByOwner.set(account.ownerId, account);
  }
  return {
    client: {
      id: rest.clientId,
      instruments: {
        totalCount: instruments.totalItems,
        nodes: instruments.data.map(({ id, alias, type, rfc, bankId, customerId }) => {
          const bank = bankById.get(bankId);
          const customer = customerById.get(customerId ?? '');
          return {
            id,
            alias,
            type,
            rfc,
            bank: bank ? { id: bank.id, attributes: bank } : null,
            customer: customer
              ? {
                  id: customer.id,
                  name: customer.name,
                  rfc: customer.rfc,
                  accounts: { nodes: accountsOf(accountByOwner.get(customer.id)) },
                }
              : null,
          };
        }),
      },
    },
  };
}

const accountsOf = (account: Account | undefined): object[] =>
  account === undefined
    ? []
    : [
        {
          id: account.id,
          clabe: account.clabeNumber,
          availableBalance: { amount: account.availableBalance, currency: 'MXN' },
        },
      ];

async function accountPage(rest: Rest, first: number): Promise<object> {
  const read = await rest.get<Items<Account> & { totalItem: number }>(
    `/v1/clients/${rest.clientId}/accounts?page=1&per_page=${first}`,
  );
  return {
    client: {
      accounts: { totalCount: read.totalItem, nodes: read.data.flatMap((account) => accountsOf(account)) },
    },
  };
}

async function transaction(rest: Rest, id: string): Promise<object> {
  const read = await rest.get<Transaction>(`/v1/clients/${rest.clientId}/transactions/${id}`);
  const { sourceInstrument: source, destinationInstrument: destination } = read;
  return {
    transaction: {
      id: read.id,
      amount: { amount: read.amount, currency: read.currency },
      rawStatus: read.transactionStatus,
      trackingId: read.trackingId,
      description: read.description,
      source: { instrumentId: source.id, alias: source.instrumentAlias, rfc: source.rfc },
      destination: { instrumentId: destination.id, alias: destination.instrumentAlias, rfc: destination.rfc },
      audit: { createdAt: read.audit.createdAt.replace(' ', 'T') },
    },
  };
}

function answer(rest: Rest, path: string): Promise<object> | object {
  const { pathname, searchParams } = new URL(path, 'http://baseline');
  switch (pathname) {
    case '/join':
      return join(rest, Number(searchParams.get('first')));
    case '/accounts':
      return accountPage(rest, Number(searchParams.get('first')));
    case '/client':
      return { client: { id: rest.clientId } };
    default:
      return transaction(rest, searchParams.get('id') ?? '');
  }
}

const server = createServer(async (request, response) => {
  try {
    const data = await answer(restOf(request.headers.authorization), request.url ?? '/');
    const body = JSON.stringify({ data });
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      .end(body);
  } catch (error) {
    response.writeHead(502).end(String(error));
  }
});
server.keepAliveTimeout = 600_000;
announce(server);
