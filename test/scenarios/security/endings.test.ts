import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { type Heard, WIRES, type Wire } from '../../helpers/wire.ts';

/** Events that a reader has still to be sent when it resumes from before them: many times what a connection buffers. */
const OLD = 60;
const FILLING = 'x'.repeat(30_000);
const LARGE = `subscription ($after: Cursor) { events(after: $after) { id cursor ... on StatusUpdateEvent {
  ${Array.from({ length: 20 }, (_, index) => `p${index}: payload`).join(' ')}
} } }`;
const SMALL = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
});
afterAll(() => sandbox.stop());

const names = (count: number) => Array.from({ length: count }, (_, number) => `message-${number}`);
const ids = ({ heard }: Wire) => heard.flatMap((one) => (one.kind === 'event' ? [one.id] : []));

async function deliver(gateway: RunningGateway, messages: readonly string[]): Promise<void> {
  for (const id_msg of messages) {
    const response = await fetch(gateway.ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
      method: 'POST',
      body: JSON.stringify({ id_msg, FILLING }),
    });
    expect(response.status).toBe(201);
  }
}

/** How a stream ends: with a closing code of the socket; over SSE with the code of an error, or cut off without `complete`. */
interface Ending {
  readonly WebSocket: number;
  readonly SSE: string | undefined;
}

/** What was heard is a beginning of what was sent, in order, and then the reason; nothing comes after it. */
async function endsWith(wire: Wire, transport: keyof Ending, ending: Ending, sent: readonly string[]) {
  await until(() => wire.heard.some(({ kind }) => kind === 'closed' || kind === 'complete'));
  const seen = ids(wire);
  expect(seen).toEqual(sent.slice(0, seen.length));
  const last = wire.heard.filter(({ kind }) => kind !== 'bookmark').slice(seen.length);
  const [why] = last;
  const code = ending[transport];
  const kind: Heard['kind'] = transport === 'WebSocket' || code === undefined ? 'closed' : 'error';
  expect(why).toMatchObject({ kind, code });
  expect(last.map((one) => one.kind)).not.toContain('event');
  return seen.length;
}

describe.each(WIRES)('over %s, a stream', (transport, wire) => {
  const EXPIRED = { WebSocket: 4403, SSE: 'UNAUTHENTICATED' };
  // `EventSource` and graphql-sse connect again after a connection that broke, and not after `complete`.
  const DRAINED = { WebSocket: 1012, SSE: undefined };

  /** A gateway with old events in its log, and the cursor before them. */
  async function start() {
    const config = { service: serviceFor(sandbox) };
    const gateway = await startGateway({ sandbox, webhooks: false, config });
    const authorization = `Bearer ${await callerToken()}`;
    const { data } = await gateway.query('{ eventCursor }', {}, { authorization });
    return { gateway, first: String(data.eventCursor) };
  }
  const shortToken = async () => {
    // Longer than a slow machine takes to open a stream and to fill it, and shorter than a reader may leave a ping unanswered.
    const end = Date.now() + 8_000;
    return { token: await callerToken({ exp: end / 1_000 }), over: () => until(() => Date.now() > end) };
  };

  it('of a stalled reader whose token ends says so behind what waited, and nothing more', async () => {
    const { gateway } = await start();
    await using _stop = gateway;
    const { token, over } = await shortToken();
    await using reader = await wire(gateway.graphql, token, { query: SMALL });
    await until(() => reader.heard.length > 0);
    reader.stall();
    await deliver(gateway, names(3));
    await over();
    reader.resume();
    expect(await endsWith(reader, transport, EXPIRED, names(4))).toBe(3);
    await deliver(gateway, ['later']);
    expect(ids(reader)).toEqual(names(3));
  });

  it('that is catching up, and stalls as its token ends, says so in the midst', async () => {
    const { gateway, first } = await start();
    await using _stop = gateway;
    await deliver(gateway, names(OLD));
    const { token, over } = await shortToken();
    await using reader = await wire(gateway.graphql, token, { query: LARGE, variables: { after: first } });
    await until(() => ids(reader).length > 0);
    reader.stall();
    await over();
    reader.resume();
    expect(await endsWith(reader, transport, EXPIRED, names(OLD))).toBeLessThan(OLD);
  });

  it('of a process that stops says so to readers that stall, and that catch up', async () => {
    const { gateway, first } = await start();
    await using _stop = gateway;
    await deliver(gateway, names(OLD));
    await using stalled = await wire(gateway.graphql, await callerToken(), { query: SMALL });
    const resuming = { query: SMALL, variables: { after: first } };
    await using reader = await wire(gateway.graphql, await callerToken(), resuming);
    await until(() => stalled.heard.length > 0 && ids(reader).length > 0);
    stalled.stall();
    const stopped = gateway.stop();
    stalled.resume();
    await endsWith(stalled, transport, DRAINED, []);
    await endsWith(reader, transport, DRAINED, names(OLD));
    await stopped;
  });
});
