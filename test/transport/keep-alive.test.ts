import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { startGateway } from '../helpers/gateway.ts';

/** The seconds for which balancers hold a connection that they may send the next request on. */
const BALANCERS_HOLD_S = 60;

it.each([readVariables({}).KEEP_ALIVE_TIMEOUT_MS, 120_000])(
  'a connection is kept for its next request for %i ms, which is longer than a balancer holds it',
  async (keepAliveTimeoutMs) => {
    await using gateway = await startGateway({ webhooks: false, config: { keepAliveTimeoutMs } });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const ask = async () => {
      const asked = request(`${gateway.url}/healthz`, { agent }).end();
      // What a request is answered with.
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      await text(answer);
      return { kept: answer.headers['keep-alive'], isReused: asked.reusedSocket };
    };
    const kept = `timeout=${keepAliveTimeoutMs / 1000}`;
    expect(await ask()).toEqual({ kept, isReused: false });
    expect(await ask()).toEqual({ kept, isReused: true });
    expect(keepAliveTimeoutMs / 1000).toBeGreaterThan(BALANCERS_HOLD_S);
  },
);

it.each(['application/json', 'multipart/mixed', 'text/event-stream'])(
  'an answer of %s is the last of its connection where the client says so',
  async (accept) => {
    await using gateway = await startGateway({ webhooks: false });
    const headers = { accept, connection: 'close', 'content-type': 'application/json' };
    const asked = request(gateway.graphql, { method: 'POST', headers });
    asked.end(JSON.stringify({ query: '{ __typename }' }));
    // What a request is answered with.
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect(await text(answer)).toContain('{"data":{"__typename":"Query"}}');
    expect(answer.headers.connection).toBe('close');
  },
);
