import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { entropy } from '../common/entropy.ts';
import { createLogger } from '../observability/logger.ts';
import { readVariables } from './config.ts';
import { configure, isLocalhost } from './configure.ts';
import { buildServer } from './gateway.ts';
import { registerWebhooks } from './register-webhooks.ts';
import type { SandboxAccess } from './sandbox-access.ts';

/** A running gateway, for a test. */
export interface TestGateway extends AsyncDisposable {
  /** Address of the graph, over HTTP, Server-Sent Events and WebSocket: `http://127.0.0.1:41234/graphql`. */
  readonly url: string;
  /** The demo client's access token, for `authorization: Bearer …`. */
  readonly token: string;
  /** Removes its webhooks from the sandbox, ends the gateway and forgets its events. The sandbox runs on. */
  close(): Promise<void>;
}

export interface TestGatewayOptions {
  /** The result of `createSandbox` of `@pasarela/sandbox`. */
  readonly sandbox: SandboxAccess;
  /** How long the gateway waits for one answer of the sandbox; default `UPSTREAM_TIMEOUT_MS`. */
  readonly upstreamTimeoutMs?: number;
  /** How long one operation may take; default `OPERATION_TIMEOUT_MS`. */
  readonly operationTimeoutMs?: number;
}

/**
 * Starts a gateway in this process, on a free port of loopback, in front of a running sandbox, and registers its webhooks
 * there. It keeps its events in a folder of its own for as long as it runs. Times are real milliseconds, and have the defaults and
 * bounds of the variables.
 *
 * @throws TypeError for an option that there is not
 */
export async function createGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const { sandbox, upstreamTimeoutMs, operationTimeoutMs, ...others } = options;
  const [other] = Object.keys(others);
  // TypeScript lets it pass where the options are spread, and JavaScript everywhere.
  if (other !== undefined) {
    throw new TypeError(
      `createGateway takes sandbox, upstreamTimeoutMs and operationTimeoutMs, and got "${other}".`,
    );
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-testing-'));
  const variables = readVariables({
    UPSTREAM_URL: sandbox.url,
    HOST: '127.0.0.1',
    PORT: '0',
    DATA_DIR: dataDir,
    WEBHOOK_SECRET: entropy.bytes(32).toString('base64url'),
    INTROSPECTION: 'true',
    UPSTREAM_REPORT: 'true',
    LOG_LEVEL: 'error',
    UPSTREAM_TIMEOUT_MS: upstreamTimeoutMs?.toString(),
    OPERATION_TIMEOUT_MS: operationTimeoutMs?.toString(),
  });
  const server = buildServer(
    { ...configure(variables, sandbox.url), publicUrl: 'self', allowsOrigin: isLocalhost },
    createLogger(variables.LOG_LEVEL),
  );
  let removeWebhooks = async (): Promise<void> => undefined;
  const end = async (): Promise<void> => {
    await removeWebhooks();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  let ending: Promise<void> | undefined;
  // A second call must not take the folder from under a payment that the first one waits for.
  const close = (): Promise<void> => {
    ending ??= end();
    return ending;
  };
  try {
    const url = `${await server.start()}/graphql`;
    removeWebhooks = await registerWebhooks(sandbox, server.ingress);
    return { url, token: sandbox.accessToken, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
