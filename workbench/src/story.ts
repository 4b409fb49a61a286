import type { Sandbox } from './session.ts';

/** One step of the story, in a tab of its own that is known by the name of its operation. */
export interface Step {
  readonly operationName: string;
  readonly title: string;
  readonly text: string;
  readonly query: string;
  variables(sandbox: Sandbox): object;
}

/** An idempotency key of the page's own making. */
const KEY = /workbench-[0-9a-f-]{36}/g;
const newKey = (): string => `workbench-${crypto.randomUUID()}`;

export const WATCH_RECEIPT = 'WatchCep';
export const WATCH_MONEY_IN = 'WatchMoneyIn';

export const STORY: readonly Step[] = [
  {
    operationName: 'Instruments',
    title: 'One question, everything around it.',
    text: 'Instruments with bank, owner, customer and account, joined. Below the result: the few REST calls that it took.',
    query: `query Instruments {
  client {
    id
    instruments(first: 25) {
      totalCount
      nodes {
        id
        alias
        type
        detail {
          ... on CardDetail {
            maskedNumber
            holderName
          }
          ... on ClabeDetail {
            clabe
            holderName
          }
        }
        bank {
          name
          institutionCode
        }
        owner {
          ... on Client {
            id
          }
          ... on Customer {
            id
            name
            validationStatus
          }
        }
        account {
          accountNumber
          availableBalance {
            amount
            currency
          }
        }
      }
    }
  }
}
`,
    variables: () => ({}),
  },
  {
    operationName: 'StartPennyValidation',
    title: 'Who owns this CLABE?',
    text: '0.01 MXN is sent there, and its receipt (CEP) will name the holder. The key names this one intent: sent again, it pays nothing.',
    query: `mutation StartPennyValidation($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) {
    ... on CreatePennyValidationSuccess {
      replayed
      transaction {
        id
        rawStatus
        amount {
          amount
          currency
        }
        cep {
          status
          validationId
        }
      }
    }
    ... on UserError {
      code
      message
      field
    }
    ... on OutcomeUnknown {
      message
      safeToRetry
    }
  }
}
`,
    variables: ({ centralizingInstrumentId, clabeInstrumentIds }) => ({
      input: {
        idempotencyKey: newKey(),
        sourceInstrumentId: centralizingInstrumentId,
        destinationInstrumentId: clabeInstrumentIds[0],
      },
    }),
  },
  {
    operationName: WATCH_RECEIPT,
    title: 'Watch the receipt arrive.',
    text: 'Its state now, then every change, until COMPLETED brings the name of the holder. Go on in other tabs: the stream stays.',
    query: `subscription WatchCep($transactionId: ID!) {
  cepStatus(transactionId: $transactionId) {
    kind
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
`,
    variables: () => ({ transactionId: '' }),
  },
  {
    operationName: WATCH_MONEY_IN,
    title: 'Watch money arrive.',
    text: 'Press play, then let a credit arrive with the bar below. Each event carries a cursor, and a stream that is cut goes on behind it.',
    query: `subscription WatchMoneyIn($after: Cursor) {
  moneyIn(after: $after) {
    cursor
    receivedAt
    amount {
      amount
      currency
    }
    payer {
      name
      account
    }
    paymentConcept
    decision
    owner {
      ... on Client {
        id
      }
      ... on Customer {
        name
      }
    }
  }
}
`,
    variables: () => ({ after: null }),
  },
];

/** What a page in front of a real service opens with. */
const FIRST_QUERY = `query Accounts {
  client {
    id
    accounts(first: 10) {
      totalCount
      nodes {
        clabe
        availableBalance {
          amount
          currency
        }
      }
    }
  }
}
`;

/** The tabs of a page that is opened for the first time. */
export const firstTabs = (sandbox: Sandbox | undefined): { query: string; variables: string }[] =>
  sandbox === undefined
    ? [{ query: FIRST_QUERY, variables: '{}' }]
    : STORY.map(({ query, variables }) => ({
        query,
        variables: JSON.stringify(variables(sandbox), null, 2),
      }));

/** Gives each visit keys of its own: a key that was kept would bring the payment of the visit before. */
export const withNewKeys = (text: string): string => {
  const keys = new Map<string, string>();
  return text.replaceAll(KEY, (key) => {
    const known = keys.get(key) ?? newKey();
    keys.set(key, known);
    return known;
  });
};
