import { PAID, TRANSACTION_ID, uuid } from '../upstream/data.ts';

/** One request of the work in both forms: as the graph is asked, and as the hand-written endpoint is. */
export interface Work {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly floorPath: string;
}

/** W1: instruments, each with bank, customer, and the customer's account with balance. */
export const join = (first: number): Work => ({
  query: `query Join($first: Int!) {
  client {
    id
    instruments(first: $first) {
      totalCount
      nodes {
        id
        alias
        type
        rfc
        bank {
          id
          attributes
        }
        customer {
          id
          name
          rfc
          accounts(first: 1) {
            nodes {
              id
              clabe
              availableBalance {
                amount
                currency
              }
            }
          }
        }
      }
    }
  }
}`,
  variables: { first },
  floorPath: `/join?first=${first}`,
});

/** W2. */
export const client: Work = {
  query: '{ client { id } }',
  variables: {},
  floorPath: '/client',
};

/** W3. */
export const transaction: Work = {
  query: `query Payment($id: ID!) {
  transaction(id: $id) {
    id
    amount {
      amount
      currency
    }
    rawStatus
    trackingId
    description
    source {
      instrumentId
      alias
      rfc
    }
    destination {
      instrumentId
      alias
      rfc
    }
    audit {
      createdAt
    }
  }
}`,
  variables: { id: TRANSACTION_ID },
  floorPath: `/transaction?id=${TRANSACTION_ID}`,
};

/** A page of the client's accounts, from its first or from a cursor. */
export const accountPage = (first: number, after?: string): Work => ({
  query: `query Page($first: Int!, $after: Cursor) {
  client {
    accounts(first: $first, after: $after) {
      totalCount
      nodes {
        id
        clabe
        availableBalance {
          amount
          currency
        }
      }
    }
  }
}`,
  variables: { first, ...(after === undefined ? {} : { after }) },
  floorPath: `/accounts?first=${first}`,
});

/** The cursor of the client's first account. */
export const firstAccountCursor: Work = {
  query: '{ client { accounts(first: 1) { pageInfo { startCursor } } } }',
  variables: {},
  floorPath: '/accounts?first=1',
};

/** One account by its id. */
export const account = (id: string): Work => ({
  query: `query One($id: ID!) {
  account(by: { id: $id }) {
    id
    clabe
    availableBalance {
      amount
      currency
    }
  }
}`,
  variables: { id },
  floorPath: '',
});

/** One customer by its id, with its accounts. */
export const customer = (id: string): Work => ({
  query: `query One($id: ID!) {
  customer(id: $id) {
    id
    name
    accounts(first: 10) {
      nodes {
        id
        availableBalance {
          amount
          currency
        }
      }
    }
  }
}`,
  variables: { id },
  floorPath: '',
});

let payments = 0;
/** What the answer to a payment that was made holds. */
export const PAYMENT_DONE = '"CreateInternalTransactionSuccess"';

/** A payment with a key of its own. */
export const payment = (): Work => {
  payments += 1;
  return {
    query: `mutation Pay($input: CreateInternalTransactionInput!) {
  createInternalTransaction(input: $input) {
    __typename
    ... on CreateInternalTransactionSuccess {
      transaction {
        id
      }
    }
  }
}`,
    variables: {
      input: {
        idempotencyKey: `the bench, ${payments}`,
        sourceInstrumentId: uuid('source', 0),
        destinationInstrumentId: uuid('destination', 0),
        amount: PAID,
        description: 'Pago',
        externalReference: '1',
      },
    },
    floorPath: '',
  };
};
