import DataLoader from 'dataloader';
import type { Rest } from './rest.ts';
import type { Account, Bank, Customer, Instrument, Items, Transaction } from './shapes.ts';

/** The part of the gateway's graph that the work asks for, for the peers. */
export const typeDefs = /* GraphQL */ `
  scalar MoneyAmount
  scalar CurrencyCode
  scalar Clabe
  scalar DateTime
  scalar JSONObject

  type Query {
    client: Client!
    transaction(id: ID!): Transaction
  }

  type Client {
    id: ID!
    instruments(first: Int = 50): InstrumentConnection
  }

  type InstrumentConnection {
    totalCount: Int!
    nodes: [Instrument!]!
  }

  type Instrument {
    id: ID!
    alias: String!
    type: String!
    rfc: String!
    bank: Bank
    customer: Customer
  }

  type Bank {
    id: ID!
    attributes: JSONObject!
  }

  type Customer {
    id: ID!
    name: String!
    rfc: String!
    accounts(first: Int = 50): AccountConnection
  }

  type AccountConnection {
    totalCount: Int!
    nodes: [Account!]!
  }

  type Account {
    id: ID!
    clabe: Clabe!
    availableBalance: Money!
  }

  type Money {
    amount: MoneyAmount!
    currency: CurrencyCode!
  }

  type Transaction {
    id: ID!
    amount: Money!
    rawStatus: String!
    trackingId: String
    description: String
    source: TransactionInstrument
    destination: TransactionInstrument
    audit: Audit!
  }

  type TransactionInstrument {
    instrumentId: ID!
    alias: String
    rfc: String
  }

  type Audit {
    createdAt: DateTime
  }
`;

/** What one operation carries: the caller's REST calls, and loaders that live as long as it does. */
export interface Context {
  readonly rest: Rest;
  readonly banks: DataLoader<string, Bank | null>;
  readonly customers: DataLoader<string, Customer | null>;
  readonly accountsByOwner: DataLoader<string, readonly Account[]>;
}

export function createContext(rest: Rest): Context {
  const base = `/v1/clients/${rest.clientId}`;
  return {
    rest,
    banks: new DataLoader(async (ids) => {
      const { banks } = await rest.get<{ banks: Bank[] }>('/v1/banks');
      const byId = new Map(banks.map((bank) => [bank.id, bank]));
      return ids.map((id) => byId.get(id) ?? null);
    }),
    customers: new DataLoader(async (ids) => {
      const { data } = await rest.get<Items<Customer>>(`${base}/customers`);
      const byId = new Map(data.map((customer) => [customer.id, customer]));
      return ids.map((id) => byId.get(id) ?? null);
    }),
    accountsByOwner: new DataLoader(async (owners) => {
      const { data } = await rest.get<Items<Account>>(`${base}/accounts`);
      const byOwner = Map.groupBy(data, (account) => account.ownerId);
      return owners.map((owner) => byOwner.get(owner) ?? []);
    }),
  };
}

interface First {
  readonly first: number;
}

/** The resolvers that all peers share. A field that only exposes a property has none. */
export const resolvers = {
  Query: {
    client: (_root: unknown, _args: object, { rest }: Context) => ({ id: rest.clientId }),
    transaction: (_root: unknown, { id }: { readonly id: string }, { rest }: Context) =>
      rest.get<Transaction>(`/v1/clients/${rest.clientId}/transactions/${id}`),
  },
  Client: {
    async instruments(_client: unknown, { first }: First, { rest }: Context) {
      const page = await rest.get<Items<Instrument>>(
        `/v1/clients/${rest.clientId}/instruments?page=1&per_page=${first}`,
      );
      return { totalCount: page.totalItems, nodes: page.data };
    },
  },
  Instrument: {
    bank: ({ bankId }: Instrument, _args: object, { banks }: Context) => banks.load(bankId),
    customer: ({ customerId }: Instrument, _args: object, { customers }: Context) =>
      customerId === undefined ? null : customers.load(customerId),
  },
  Bank: {
    attributes: (bank: Bank) => bank,
  },
  Customer: {
    async accounts({ id }: Customer, { first }: First, { accountsByOwner }: Context) {
      const accounts = await accountsByOwner.load(id);
      return { totalCount: accounts.length, nodes: accounts.slice(0, first) };
    },
  },
  Account: {
    clabe: ({ clabeNumber }: Account) => clabeNumber,
    availableBalance: ({ availableBalance }: Account) => ({ amount: availableBalance, currency: 'MXN' }),
  },
  Transaction: {
    amount: (transaction: Transaction) => transaction,
    rawStatus: ({ transactionStatus }: Transaction) => transactionStatus,
    source: ({ sourceInstrument }: Transaction) => sourceInstrument,
    destination: ({ destinationInstrument }: Transaction) => destinationInstrument,
  },
  TransactionInstrument: {
    instrumentId: ({ id }: Transaction['sourceInstrument']) => id,
    alias: ({ instrumentAlias }: Transaction['sourceInstrument']) => instrumentAlias,
  },
  Audit: {
    createdAt: ({ createdAt }: Transaction['audit']) => createdAt.replace(' ', 'T'),
  },
};
