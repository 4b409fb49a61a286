import { isOwnHost, type Sandbox, startSandbox } from '#sandbox';
import { EVENT_TYPES } from '../events/log.ts';
import type { IngressAddresses } from '../operation/services.ts';

export interface DemoOptions {
  /** The port of loopback on which the sandbox listens; 0 for any free port. */
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

/** The embedded sandbox, with what a person needs to explore the graph on it. */
export interface Demo {
  /** Origin of the sandbox. */
  readonly upstreamUrl: string;
  /** True if a `Host` header names this machine, or one of `DemoOptions.hosts`. */
  isOwnHost(host: string | undefined): boolean;
  /** Registers the gateway's own ingress for the events of the sandbox. */
  registerWebhooks(ingress: IngressAddresses): Promise<void>;
  /** Returns the text for the terminal that says what to do next. */
  welcome(gatewayUrl: string): string;
  stop(): Promise<void>;
}

/** Starts the sandbox. */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const sandbox = await startSandbox(options);
  return {
    upstreamUrl: sandbox.url,
    isOwnHost: (host) => isOwnHost(host, options.hosts),
    registerWebhooks: (ingress) => register(sandbox, ingress),
    welcome: (gatewayUrl) => welcome(sandbox, gatewayUrl, options.speed),
    stop: () => sandbox.stop(),
  };
}

/** Registers without requests: three of them, the first that a process sends and serves, would take a fifth of its start. */
async function register(sandbox: Sandbox, ingress: IngressAddresses): Promise<void> {
  const { clientId } = sandbox;
  for (const type of EVENT_TYPES) {
    const url = ingress.url(clientId, type);
    if (url === undefined) throw new Error('The gateway knows no address of its own for webhooks.');
    await sandbox.registerWebhook({ type, url, token: ingress.token(clientId, type) });
  }
}

function welcome(sandbox: Sandbox, gatewayUrl: string, speed: number): string {
  const json = "-H 'content-type: application/json'";
  return `
Pasarela is ready, on an embedded sandbox. No real money moves.

  GraphiQL   ${gatewayUrl}/graphql    four tabs tell the story: press play in each
  Sandbox    ${sandbox.url}    the REST service beneath, its clock ${speed} times faster
  Client     ${sandbox.clientId}

Or in a terminal. Paste this, and money is shown as it arrives:

  export TOKEN=${sandbox.accessToken}
  curl -sN ${gatewayUrl}/graphql -H "authorization: Bearer $TOKEN" ${json} -H 'accept: text/event-stream' -d '{"query":"subscription { moneyIn { receivedAt amount { amount currency } payer { name } } }"}'

In a second terminal, let a credit arrive:

  export CLABE=${sandbox.centralizing.clabe}
  curl -s ${sandbox.url}/sandbox/spei-credits ${json} -d '{"clabe":"'$CLABE'","amount":"1250.00","payerName":"Ana Torres"}'

Ctrl-C ends it.
`;
}
