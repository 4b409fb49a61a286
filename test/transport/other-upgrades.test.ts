import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { startGateway } from '../helpers/gateway.ts';

/** What Java's HTTP client sends with the first request over `http://`. */
const OFFERS_HTTP_2 = {
  connection: 'Upgrade, HTTP2-Settings',
  upgrade: 'h2c',
  'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
};

it('a request that offers HTTP/2 is answered over HTTP/1.1: an operation, a webhook and a probe', async () => {
  await using gateway = await startGateway();
  const { sandbox, ingress } = gateway;
  const send = async (url: string, body?: object) => {
    const headers = {
      ...OFFERS_HTTP_2,
      authorization: `Bearer ${sandbox.accessToken}`,
      'content-type': 'application/json',
    };
    const sent = request(url, { method: body === undefined ? 'GET' : 'POST', headers });
    sent.end(JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return [answer.statusCode, await text(answer)];
  };
  expect(await send(gateway.graphql, { query: '{ client { id } }' })).toEqual([
    200,
    `{"data":{"client":{"id":"${sandbox.clientId}"}}}`,
  ]);
  expect(await send(`${gateway.url}/healthz`)).toEqual([200, '{"status":"alive"}']);
  const { pathname } = new URL(ingress.url(sandbox.clientId, 'MONEY_IN') ?? '');
  const body = { id: randomUUID(), amount: '1.00' };
  const delivery = { id_msg: randomUUID(), msg_name: 'MONEY_IN', body };
  expect(await send(`${gateway.url}${pathname}`, delivery)).toEqual([201, '']);
});
