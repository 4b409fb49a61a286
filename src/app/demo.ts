import { randomUUID } from 'node:crypto';
import type { GraphiQLOptions } from 'graphql-yoga';
import type { IngressAddresses } from '../operation/context.ts';
import { isOwnHost, type Sandbox, startSandbox } from '../sandbox/index.ts';

export interface DemoOptions {
  /** Where the sandbox listens on loopback; 0 for any free port. */
  readonly port: number;
  /** How many times faster than real time the sandbox's clock runs. */
  readonly speed: number;
  readonly seed: number;
  /** See `SandboxOptions.customers`. */
  readonly customers: number;
  /** See `SandboxOptions.run`. */
  readonly run?: string;
  /** Names that the sandbox and GraphiQL answer to, besides those of loopback. */
  readonly hosts: readonly string[];
  /** See `SandboxOptions.webhookHosts`. */
  readonly webhookHosts: readonly string[];
}

/** What GraphiQL opens with for the request that asks for it. */
type GraphiQLForRequest = (request: Request) => GraphiQLOptions;

/** The embedded sandbox, and what a person needs to explore the graph on it. */
export interface Demo {
  /** Origin of the sandbox. */
  readonly upstreamUrl: string;
  /** Subscriptions go over SSE, or over a WebSocket at `/graphql?subscriptions=WS`. */
  readonly graphiql: GraphiQLForRequest;
  /** Registers the gateway's own ingress for what the sandbox notifies: CEP and MONEY_IN. */
  registerWebhooks(ingress: IngressAddresses): Promise<void>;
  /** What to do next, for the terminal. */
  welcome(gatewayUrl: string): string;
  stop(): Promise<void>;
}

/** Starts the sandbox and prepares the story that GraphiQL opens with. */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const sandbox = await startSandbox(options);
  return {
    upstreamUrl: sandbox.url,
    graphiql: graphiqlStory(sandbox, options),
    async registerWebhooks(ingress) {
      await Promise.all(
        (['CEP', 'MONEY_IN'] as const).map((type) => registerWebhook(sandbox, ingress, type)),
      );
    },
    welcome: (gatewayUrl) => welcome(sandbox, gatewayUrl, options.speed),
    stop: () => sandbox.stop(),
  };
}

/** Registers one webhook as any client of the service would (docs/upstream-api.md, endpoint 17). */
async function registerWebhook(
  sandbox: Sandbox,
  ingress: IngressAddresses,
  type: 'CEP' | 'MONEY_IN',
): Promise<void> {
  const { clientId } = sandbox;
  const response = await fetch(`${sandbox.url}/v1/clients/${clientId}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_id: clientId,
      url: ingress.url(clientId, type),
      token: ingress.token(clientId, type),
      webhook_type: type,
      auth_type: 'AUTH',
    }),
  });
  if (!response.ok) {
    throw new Error(
      `The sandbox refused the ${type} webhook with status ${response.status}: ${await response.text()}`,
    );
  }
}

const WITHOUT_TOKEN: GraphiQLOptions = {
  title: 'Pasarela',
  shouldPersistHeaders: false,
  defaultQuery: `# This page was opened under a name that is not this
# machine's own, so that it holds no access token. Open
# it at localhost, or name the host in SANDBOX_HOSTS.
`,
};

const INSTRUMENTS = `# 1 of 4. Instruments with their banks, owners,
# accounts and balances, in one request.
# "extensions.upstream", at the end of the result,
# lists the REST calls that it took.
query Instruments {
  client {
    id
    instruments(first: 25) {
      totalCount
      pageInfo {
        hasNextPage
        endCursor
      }
      nodes {
        id
        alias
        type
        rfc
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
          id
          attributes
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
`;

const PENNY_VALIDATION = `# 2 of 4. Verify who owns a CLABE: 0.01 MXN is
# sent there, and the receipt (CEP) names the holder.
#
# The key in the variables names this one intent:
# sent again, it gives the same answer and pays
# nothing. Change it to start another validation.
# Then copy the transaction's id into the variables
# of the next tab.
mutation StartPennyValidation($input: CreatePennyValidationInput!) {
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
        destination {
          alias
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
`;

const CEP = (speed: number) => `# 3 of 4. Watch the receipt: its state now, then
# every change, until it is COMPLETED or FAILED.
# Give it the transaction's id below. The sandbox's
# clock runs ${speed} times faster than yours.
subscription WatchCep($transactionId: ID!) {
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
`;

const MONEY_IN = (sandboxUrl: string, clabe: string) => `# 4 of 4. Watch money arrive. Press play, and let
# a credit come in from a terminal:
#
# curl ${sandboxUrl}/sandbox/spei-credits \\
#   -H 'content-type: application/json' \\
#   -d '{ "clabe": "${clabe}",
#         "amount": "1250.00",
#         "payerName": "Ana Torres" }'
#
# A cursor given as "after" continues behind its
# event. This page streams over SSE, and at
# /graphql?subscriptions=WS over a WebSocket.
subscription WatchMoneyIn($after: Cursor) {
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
`;

/**
 * GraphiQL with the demo client's token in the headers, and a tab for each step of the story. A page that was asked for under
 * another name than this machine's own, as any page of the web can (DNS rebinding), holds no token.
 */
function graphiqlStory(sandbox: Sandbox, { speed, hosts }: DemoOptions): GraphiQLForRequest {
  const { centralizing, clabeInstrumentIds } = sandbox;
  const connectionParams = { authorization: `Bearer ${sandbox.accessToken}` };
  const headers = JSON.stringify(connectionParams, null, 2);
  const tab = (query: string, variables: object) => ({
    query,
    variables: JSON.stringify(variables, null, 2),
    headers,
  });
  const overSse: GraphiQLOptions = {
    title: 'Pasarela',
    headers,
    defaultHeaders: headers,
    // A token kept by the browser would outlive the sandbox that issued it.
    shouldPersistHeaders: false,
    subscriptionsProtocol: 'SSE',
    defaultEditorToolsVisibility: 'variables',
    defaultTabs: [
      tab(INSTRUMENTS, {}),
      tab(PENNY_VALIDATION, {
        input: {
          idempotencyKey: `validation-${randomUUID()}`,
          sourceInstrumentId: centralizing.instrumentId,
          destinationInstrumentId: clabeInstrumentIds[0],
        },
      }),
      tab(CEP(speed), { transactionId: '' }),
      tab(MONEY_IN(sandbox.url, centralizing.clabe), { after: null }),
    ],
  };
  // A socket is opened with these: the headers of a tab travel with the operation, where no gateway looks for a token.
  const overWebSocket = { ...overSse, subscriptionsProtocol: 'WS' as const, connectionParams };
  return ({ url, headers: asked }) => {
    if (!isOwnHost(asked.get('host'), hosts)) return WITHOUT_TOKEN;
    return new URL(url).searchParams.get('subscriptions') === 'WS' ? overWebSocket : overSse;
  };
}

function welcome(sandbox: Sandbox, gatewayUrl: string, speed: number): string {
  return `
Pasarela is ready, on an embedded sandbox. No real money moves.

  GraphiQL   ${gatewayUrl}/graphql    four tabs tell the story: press play in each
  Sandbox    ${sandbox.url}/sandbox    the REST service beneath, its clock ${speed} times faster
  Client     ${sandbox.clientId}

Three lines to try:

  export TOKEN=${sandbox.accessToken}
  curl -s ${gatewayUrl}/graphql -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"query":"{ client { accounts { nodes { clabe availableBalance { amount } } } } }"}'
  curl -sN ${gatewayUrl}/graphql -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -H 'accept: text/event-stream' -d '{"query":"subscription { moneyIn { amount { amount } payer { name } } }"}'

Ctrl-C ends it.
`;
}
