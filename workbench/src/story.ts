import type { Operation } from './net/result.ts';
import type { Sandbox } from './session.ts';
import { t } from './words.ts';

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
/** Only pages of https and of this machine have `randomUUID`. */
const newKey = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(18));
  return `workbench-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
};

export const WATCH_RECEIPT = 'WatchCep';
export const WATCH_MONEY_IN = 'WatchMoneyIn';
export const START_VALIDATION = 'StartPennyValidation';

/** Whether this is the receipt's watch, and nothing has been started yet that it could watch. */
export const lacksValidation = ({ operationName, variables }: Operation): boolean =>
  operationName === WATCH_RECEIPT && variables?.['transactionId'] === '';

/** The variables with a new idempotency key; undefined where they hold none. */
export function withOtherKey(variables: string): string | undefined {
  const renewed = variables.replaceAll(
    /("idempotencyKey"\s*:\s*)"[^"]*"/g,
    (_, name: string) => `${name}"${newKey()}"`,
  );
  return renewed === variables ? undefined : renewed;
}

export const STORY: readonly Step[] = [
  {
    operationName: 'Instruments',
    title: t('One question, everything around it.'),
    text: t(
      'Instruments with bank, owner, customer and account, joined. Below the result: the four REST calls that it took.',
    ),
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
    operationName: START_VALIDATION,
    title: t('Who owns this CLABE?'),
    text: t(
      '0.01 MXN is sent there, and its receipt (CEP) will name the holder. The key stands for this one intent: sent again, it does not pay twice.',
    ),
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
    title: t('Watch the receipt arrive.'),
    text: t(
      'Its state now, then every change, until COMPLETED brings the name of the holder. Go on in other tabs: the stream stays.',
    ),
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
    title: t('Watch money arrive.'),
    text: t(
      'Press play, then let a credit arrive with the bar below. Each event carries a cursor, and a stream that is cut resumes after it.',
    ),
    query: `subscription WatchMoneyIn($after: Cursor) {
  moneyIn(after: $after) {
    cursor
    receivedAt
    transactionId
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
    subCategory
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

/** Gives each visit of a sandbox keys of its own: a key that was kept would bring the payment of the visit before. */
export const withNewKeys = (text: string): string => {
  const keys = new Map<string, string>();
  return text.replaceAll(KEY, (key) => {
    const known = keys.get(key) ?? newKey();
    keys.set(key, known);
    return known;
  });
};
