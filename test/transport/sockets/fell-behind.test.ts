import type { ServerResponse } from 'node:http';
import { UnsecuredJWT } from 'jose';
import { expect, it } from 'vitest';
import { readMetric } from '../../helpers/fleet.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { speiCredit } from '../../helpers/ingress.ts';
import { connect } from '../../helpers/socket.ts';
import { until } from '../../helpers/until.ts';

const TOKEN = `Bearer ${new UnsecuredJWT({ client_id: CLIENT_ID }).setExpirationTime('1h').encode()}`;
/** One that is being shown, 256 that may wait, and one more. */
const TOO_MANY = 258;

const change = (id: string) =>
  `mutation { deleteWebhook(input: { id: "${id}" }) { ... on DeleteWebhookSuccess { id } } }`;

it('a socket whose feed falls behind the service answers the change that waits for the same service, and begins no other', async () => {
  const held = new Map<string, ServerResponse>();
  await using upstream = await startUpstream((request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    if (path.endsWith('/instruments'))
      json(response, { currentPage: 1, perPage: 1, totalItems: 0, data: [] });
    else held.set(path.split('/').at(-1) ?? '', response);
  });
  const config = { upstreamUrl: upstream.url, upstreamTimeoutMs: 120_000, operationTimeoutMs: 120_000 };
  await using gateway = await startGateway({ webhooks: false, config });
  const socket = await connect(gateway, TOKEN);
  const closed = socket.closed();
  socket.ask('feed', 'subscription { moneyIn { transaction { status } } }');
  // A stream tells where it stands as it begins.
  await until(() => socket.got.some(({ type }) => type === 'ping'));
  socket.ask('change', change('one'));
  const answer = await until(() => held.get('one'));
  const deliver = async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(speiCredit());
    const { status } = await fetch(gateway.ingress.url(CLIENT_ID, 'MONEY_IN') ?? '', {
      method: 'POST',
      headers,
      body,
    });
    return status;
  };
  const statuses = await Promise.all(Array.from({ length: TOO_MANY }, deliver));
  expect(new Set(statuses)).toEqual(new Set([201]));
  const ended = 'pasarela_events_slow_consumer_disconnects_total';
  await until(async () => (await readMetric(gateway.url, ended)) === 1);
  socket.ask('later', change('two'));
  socket.send({ type: 'ping' });
  await Promise.race([closed, until(() => socket.got.some(({ type }) => type === 'pong'))]);
  answer.writeHead(204).end();
  expect(await closed).toBe(1013);
  expect(socket.got.filter(({ id }) => id !== undefined)).toEqual([
    { type: 'next', id: 'change', payload: { data: { deleteWebhook: { id: 'one' } } } },
    { type: 'complete', id: 'change' },
  ]);
  expect(held.has('two')).toBe(false);
  for (const response of held.values()) response.destroy();
});
