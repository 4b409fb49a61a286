import type { CreditFragment } from '../gql/graphql.ts';
import { graphql } from '../gql/index.ts';

export type Credit = CreditFragment;

graphql(`
  fragment Credit on MoneyInEvent {
    id
    cursor
    receivedAt
    amount {
      amount
      currency
    }
    payer {
      name
    }
    beneficiary {
      name
      account
    }
    paymentConcept
    decision
  }
`);

/** Asked before the history is read, so that nothing can fall between the two. */
export const LOG_END = graphql(`
  query LogEnd {
    eventCursor
  }
`);

export const RECENT_CREDITS = graphql(`
  query RecentCredits($last: Int!) {
    events(last: $last, types: [MONEY_IN]) {
      nodes {
        ... on MoneyInEvent {
          ...Credit
        }
      }
    }
  }
`);

/** What has arrived since a cursor, to know how far behind the list is. */
export const MISSED_CREDITS = graphql(`
  query MissedCredits($after: Cursor!) {
    events(first: 100, after: $after, types: [MONEY_IN]) {
      nodes {
        id
      }
      pageInfo {
        hasNextPage
        endCursor
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
