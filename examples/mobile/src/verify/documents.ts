import type { ReceiverFragment } from '../gql/graphql.ts';
import { graphql } from '../gql/index.ts';

export type Receiver = ReceiverFragment;

graphql(`
  fragment Receiver on Instrument {
    id
    alias
    bank {
      id
      attributes
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

export const ACCOUNTS_TO_VERIFY = graphql(`
  query AccountsToVerify($after: String) {
    client {
      id
      instruments(first: 100, after: $after) {
        pageInfo {
          hasNextPage
          endCursor
        }
        nodes {
          ...Receiver
        }
      }
      accounts(first: 100) {
        nodes {
          id
          ownerId
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
      }
    }
  }
`);

export const VERIFICATION = graphql(`
  query Verification($transactionId: ID!) {
    transaction(id: $transactionId) {
      id
      amount {
        amount
        currency
      }
      audit {
        createdAt
      }
      destination {
        instrumentId
        alias
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
