import type { CreditFragment } from '../gql/graphql.ts';
import { graphql } from '../gql/index.ts';

export type Credit = CreditFragment;

graphql(`
  fragment Credit on MoneyInEvent {
    id
    cursor
    transactionId
    receivedAt
    amount {
      amount
      currency
    }
    payer {
      name
      rfc
      account
    }
    payerInstitution
    beneficiary {
      name
      account
    }
    paymentConcept
    numericReference
    trackingKey
    transactionDate
    decision
    subCategory
    refundReason
  }
`);

export const RECENT_CREDITS = graphql(`
  query RecentCredits($before: Cursor) {
    events(last: 100, before: $before, types: [MONEY_IN]) {
      nodes {
        ... on MoneyInEvent {
          ...Credit
        }
      }
      pageInfo {
        hasPreviousPage
        startCursor
      }
    }
  }
`);

export const WATCH_MONEY_IN = graphql(`
  subscription WatchMoneyIn($after: Cursor) {
    moneyIn(after: $after) {
      ...Credit
    }
  }
`);
