import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { Secret } from '../../../src/common/secret.ts';
import type { EventType } from '../../../src/events/log.ts';
import { ingressUrl } from '../../../src/ingress/addresses.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { speiCredit, startDecider } from '../../helpers/ingress.ts';
import { startRedis } from '../../helpers/redis.ts';
import { subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { goOn, world } from './world.ts';

const RETENTION = 100;
/** Each such subscription to itself takes more of an event than a socket may have waiting. */
const LARGE = `subscription { events { ... on StatusUpdateEvent {
  ${Array.from({ length: 25 }, (_, index) => `p${index}: payload`).join(' ')}
} } }`;
/** A rate of 0.1 a second over ten minutes is sixty. */
const STALLED = 90;
/** Longer than the second from which on an event is late. */
const AWAY_MS = 2_500;

/** Opens sockets that subscribe and read nothing. */
async function stall({ graphql, sandbox }: RunningGateway): Promise<WebSocket> {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  socket.on('error', () => {});
  await once(socket, 'open');
  const authorization = `Bearer ${sandbox.accessToken}`;
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  await once(socket, 'message');
  socket.pause();
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: LARGE } }));
  return socket;
}

/** A gateway on a Redis that asks a decider about credits. */
export const EVENTS = world(
  'the way of events',
  async (cleanup) => {
    const redis = cleanup.use(await startRedis());
    const decider = cleanup.use(await startDecider({ status: 201 }));
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-alerts-events-'));
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
    const gateway = cleanup.use(
      await startGateway({
        webhooks: false,
        config: {
          dataDir,
          redisUrl: new Secret(redis.url),
          eventsRetention: RETENTION,
          moneyInDecisionUrl: decider.url,
        },
      }),
    );
    const post = (type: EventType, body: unknown) =>
      fetch(gateway.ingress.url(gateway.sandbox.clientId, type) ?? '', {
        method: 'POST',
        body: JSON.stringify(body),
      });
    const deliver = () => post('STATUS_UPDATE', { id_msg: randomUUID() });
    return { url: gateway.url, gateway, redis, decider, dataDir, post, deliver };
  },
  [
    {
      alerts: ['PasarelaEventLag'],
      fault: 'Redis answers nothing for seconds, while webhooks come and a subscriber waits for them.',
      async cause({ gateway, redis, deliver }, ended) {
        await using waiting = subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
          query: 'subscription { events { id } }',
        });
        await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === 1);
        await goOn(ended, async () => {
          redis.freeze();
          const since = Date.now();
          const before = waiting.results.length;
          // As the provider does, which comes again while it gets no 201.
          await until(async () => (await deliver()).status === 201);
          await until(() => Date.now() - since > AWAY_MS);
          redis.thaw();
          await until(() => waiting.results.length > before);
        });
      },
    },
    {
      alerts: ['PasarelaMoneyInConflict'],
      fault: 'A credit is delivered, and then another one under the same id_msg.',
      async cause({ post }) {
        const credit = speiCredit();
        await post('MONEY_IN', credit);
        await post('MONEY_IN', speiCredit({ id_msg: credit.id_msg }));
      },
    },
    {
      alerts: ['PasarelaCreditsUndecided'],
      fault: 'The decider has gone, and a credit is delivered.',
      async cause({ decider, post }) {
        await decider[Symbol.asyncDispose]();
        await post('MONEY_IN', speiCredit());
      },
    },
    {
      alerts: ['PasarelaWebhooksQuarantined'],
      fault: 'A credit without an amount is delivered to a signed address.',
      cause: ({ post }) => post('MONEY_IN', speiCredit({ body: { amount: '' } })),
    },
    {
      alerts: ['PasarelaWebhooksUnauthenticated'],
      fault: 'The provider delivers to an address that a former WEBHOOK_SECRET has signed.',
      cause: ({ gateway: { url, sandbox } }, ended) =>
        goOn(ended, () =>
          fetch(ingressUrl(url, sandbox.clientId, 'MONEY_IN', 'the former secret'), {
            method: 'POST',
            body: JSON.stringify(speiCredit()),
          }),
        ),
    },
    {
      alerts: ['PasarelaPoison'],
      fault: 'Another program publishes on the channel of a client in this Redis.',
      async cause({ redis, gateway }, ended) {
        await using _reading = subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
          query: 'subscription { events { id } }',
        });
        await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === 1);
        await redis.admin.publish(`{${gateway.sandbox.clientId}}:events`, 'of another program');
        await once(ended, 'abort');
      },
    },
    {
      alerts: ['PasarelaSlowSubscribers'],
      fault: 'Clients subscribe to large events and read nothing.',
      async cause({ gateway, post }, ended) {
        const subscribers = () => readMetric(gateway.url, 'pasarela_events_subscribers');
        const before = await subscribers();
        const stalled = await Promise.all(Array.from({ length: STALLED }, () => stall(gateway)));
        await until(async () => (await subscribers()) === before + STALLED);
        while (!ended.aborted && (await subscribers()) > before)
          await post('STATUS_UPDATE', { id_msg: randomUUID(), filling: 'x'.repeat(60_000) });
        for (const socket of stalled) socket.terminate();
      },
    },
    {
      alerts: ['PasarelaEventGaps'],
      fault: 'A client comes back with a cursor older than what is retained.',
      async cause({ gateway, deliver }) {
        const { data } = await gateway.query('{ eventCursor }');
        // More than the gateway remembers beside the log.
        for (let number = 0; number < 3 * RETENTION; number += 1) await deliver();
        await using late = subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
          query: 'subscription ($after: Cursor) { events(after: $after) { id } }',
          variables: { after: data.eventCursor },
        });
        await late.ended;
      },
    },
    {
      alerts: ['PasarelaSpoolUnreadable'],
      fault: 'A file that is named like a spool and holds something else lies in DATA_DIR.',
      cause: ({ dataDir }) => writeFile(join(dataDir, 'spooled-7.sqlite'), 'something else'.repeat(100)),
    },
  ],
);
