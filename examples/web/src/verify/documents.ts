import type { PayingAccountsFragment, ReceiverFragment, ReceiversFragment } from '../gql/graphql.ts';
import { graphql } from '../gql/index.ts';

export type Receiver = ReceiverFragment;
export type ReceiverPage = ReceiversFragment;
export type AccountPage = PayingAccountsFragment;
export type PayingAccount = NonNullable<AccountPage['nodes'][number]>;

graphql(`
  fragment Receivers on InstrumentConnection {
    totalCount
    pageInfo {
      hasNextPage
      endCursor
    }
    nodes {
      ...Receiver
    }
  }
`);

graphql(`
  fragment Receiver on Instrument {
    id
    alias
    bank {
      id
      name
    }
    detail {
      ... on ClabeDetail {
        clabe
        holderName
      }
    }
    account {
      id
    }
  }
`);

graphql(`
  fragment PayingAccounts on AccountConnection {
    totalCount
    pageInfo {
      hasNextPage
      endCursor
    }
    nodes {
      id
      ownerId
      clabe
      instrumentId
      instrument {
        id
        alias
      }
      availableBalance {
        amount
        currency
      }
    }
  }
`);

export const ACCOUNTS_TO_VERIFY = graphql(`
  query AccountsToVerify {
    client {
      id
      instruments(first: 100) {
        ...Receivers
      }
      accounts(first: 100) {
        ...PayingAccounts
      }
    }
  }
`);

export const MORE_RECEIVERS = graphql(`
  query MoreReceivers($after: Cursor!) {
    client {
      id
      instruments(first: 100, after: $after) {
        ...Receivers
      }
    }
  }
`);

export const MORE_ACCOUNTS = graphql(`
  query MoreAccounts($after: Cursor!) {
    client {
      id
      accounts(first: 100, after: $after) {
        ...PayingAccounts
      }
    }
  }
`);

export const START_VERIFICATION = graphql(`
  mutation StartVerification($input: CreatePennyValidationInput!) {
    createPennyValidation(input: $input) {
      __typename
      ... on CreatePennyValidationSuccess {
        transaction {
          id
        }
      }
      ... on UserError {
        code
        message
      }
      ... on OutcomeUnknown {
        message
        safeToRetry
        retryUntil
      }
    }
  }
`);

/** Tells what became of a key, and sends nothing. */
export const BECAME = graphql(`
  query Became($key: String!) {
    payment(idempotencyKey: $key) {
      state
    }
  }
`);

export const VERIFICATION = graphql(`
  query Verification($transactionId: ID!) {
    transaction(id: $transactionId) {
      id
      trackingId
      audit {
        createdAt
      }
      destination {
        instrumentId
        alias
        bank {
          id
          name
        }
        detail {
          ... on ClabeDetail {
            clabe
            holderName
          }
        }
      }
    }
  }
`);

export const WATCH_RECEIPT = graphql(`
  subscription WatchReceipt($transactionId: ID!) {
    cepStatus(transactionId: $transactionId) {
      kind
      transactionId
      cep {
        status
        final
        beneficiaryName
        beneficiaryRfc
        processedAt
        url
      }
    }
  }
`);
