import { once } from 'node:events';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { EventLog } from '../../src/events/log.ts';
import { WrappedLog } from '../../src/events/wrapped-log.ts';
import { hashOf } from '../../src/graphql/plugins/trusted-documents.ts';
import type { Tracing } from '../../src/observability/tracing.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

const MONEY_IN = 'subscription { moneyIn { cursor } }';
const EVENTS = 'subscription { events { cursor } }';
const LISTED = new Map([MONEY_IN, EVENTS].map((text) => [hashOf(text), text]));
/** Of each way to ask; together they are thousands. */
const MANY = 300;
const AT_ONCE = 20;

const gateways: { readonly mode: string; readonly gateway: RunningGateway; readonly token: string }[] = [];
beforeAll(async () => {
  const passthrough = await startGateway({ config: { trustedDocuments: LISTED } });
  const { sandbox } = passthrough;
  const service = await startGateway({
    sandbox,
    config: { trustedDocuments: LISTED, service: serviceFor(sandbox) },
  });
  gateways.push(
    { mode: 'passthrough', gateway: passthrough, token: sandbox.accessToken },
    { mode: 'service', gateway: service, token: await callerToken() },
  );
});
afterAll(async () => {
  for (const { gateway } of gateways.toReversed()) await gateway.stop();
});

/** What the gateway tells its operator of one thing. */
async function metric({ url }: RunningGateway, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length),
  );
}

/** Streams that are open in the gateway. */
const followers = (gateway: RunningGateway) => metric(gateway, 'pasarela_events_subscribers');
const seats = (gateway: RunningGateway) => metric(gateway, 'pasarela_open_streams{kind="sse"}');

/** A log that begins to follow once it is let. */
class SlowLog extends WrappedLog {
  readonly asked = Promise.withResolvers<void>();
  readonly let = Promise.withResolvers<void>();

  override async follow(...args: Parameters<EventLog['follow']>) {
    this.asked.resolve();
    await this.let.promise;
    return super.follow(...args);
  }
}

/** Does something many times over, some of it at once. */
async function repeat(work: () => Promise<void>): Promise<void> {
  for (let done = 0; done < MANY; done += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }
}

const REFUSED: readonly (readonly [string, object | undefined, Readonly<Record<string, string>>])[] = [
  ['a document named by its hash', { documentId: `sha256:${hashOf(MONEY_IN)}` }, {}],
  ['a document named beside an empty text', { query: '', documentId: hashOf(EVENTS) }, {}],
  ['a document in full', { query: MONEY_IN }, {}],
  ['another form of JSON', { query: MONEY_IN }, { accept: 'application/graphql-response+json' }],
  ['a form that is none of ours', { query: EVENTS }, { accept: 'image/png' }],
  ['parts of a multipart answer', { query: EVENTS }, { accept: 'multipart/mixed' }],
  ['a GET', undefined, { 'x-requested-with': 'test' }],
];

describe('a subscription that is asked for as JSON', () => {
  it.each(REFUSED)('by %s is refused and followed by nobody', async (_, body, headers) => {
    for (const { mode, gateway, token } of gateways) {
      const get = `${gateway.graphql}?query=${encodeURIComponent(MONEY_IN)}`;
      await repeat(async () => {
        const response = await fetch(body === undefined ? get : gateway.graphql, {
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            accept: 'application/json',
            ...headers,
          },
          ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        });
        expect({ mode, status: response.status, text: await response.text() }).toEqual({
          mode,
          status: 406,
          text: expect.stringContaining('text/event-stream'),
        });
      });
      await until(async () => (await followers(gateway)) === 0);
    }
  });
});

describe('a subscriber who has gone before the first event', () => {
  it.each(['text/event-stream', '*/*'])('over SSE, as %s, is not followed for', async (accept) => {
    for (const { gateway, token } of gateways) {
      let sent = 0;
      await repeat(async () => {
        sent += 1;
        const call = request(gateway.graphql, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept },
        });
        call.on('error', () => undefined);
        call.end(JSON.stringify({ query: sent % 2 === 0 ? MONEY_IN : EVENTS }));
        if (sent % 3 === 0) await once(call, 'response');
        // Some leave before the answer begins: at once, or while the caller is being identified.
        else if (sent % 3 === 1) await once(call, 'finish');
        call.destroy();
      });
      await until(async () => (await followers(gateway)) === 0);
    }
  });

  it('over SSE takes no seat, where it has left while the log was asked', async () => {
    const made = Promise.withResolvers<SlowLog>();
    const tracing: Tracing = {
      plugin: () => ({}),
      within: (_headers, work) => work(),
      webhook: (_path, _response, work) => work(),
      call: () => undefined,
      log(log) {
        const slow = new SlowLog(log);
        made.resolve(slow);
        return slow;
      },
      stop: async () => undefined,
    };
    await using gateway = await startGateway({ config: { tracing } });
    const slow = await made.promise;
    const call = request(gateway.graphql, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
        'content-type': 'application/json',
        accept: '*/*',
      },
    });
    call.on('error', () => undefined).end(JSON.stringify({ query: EVENTS }));
    await slow.asked.promise;
    call.destroy();
    const gone = 'pasarela_http_request_duration_seconds_count{path="/graphql",status="0"}';
    await until(async () => (await metric(gateway, gone)) === 1);
    slow.let.resolve();
    await until(() => gateway.query('{ __typename }').then(({ data }) => data));
    await until(async () => (await followers(gateway)) === 0);
    expect(await seats(gateway)).toBe(0);
  });

  it('over WebSocket is not followed for', async () => {
    for (const { gateway, token } of gateways) {
      let opened = 0;
      await repeat(async () => {
        opened += 1;
        const rank = opened;
        const socket = new WebSocket(gateway.graphql.replace('http', 'ws'), 'graphql-transport-ws');
        await once(socket, 'open');
        const init = {
          type: 'connection_init',
          payload: { authorization: `Bearer ${rank % 2 === 0 ? token : `${token} `}` },
        };
        socket.send(JSON.stringify(init));
        await once(socket, 'message');
        socket.send(
          JSON.stringify({
            id: '1',
            type: 'subscribe',
            payload: { query: rank % 3 === 0 ? EVENTS : MONEY_IN },
          }),
        );
        socket.terminate();
        await once(socket, 'close');
      });
      await until(async () => (await followers(gateway)) === 0);
    }
  });

  it('leaves the others their stream', async () => {
    for (const { gateway, token } of gateways) {
      const open = await fetch(gateway.graphql, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'text/event-stream',
        },
        body: JSON.stringify({ query: MONEY_IN }),
      });
      expect(await followers(gateway)).toBe(1);
      const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
      await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
        clabe: accounts[0].clabe,
        amount: '1.00',
      });
      const decoder = new TextDecoder();
      let text = '';
      for await (const chunk of open.body ?? []) {
        text += decoder.decode(chunk);
        if (text.includes('event: next')) break;
      }
      expect(text).toContain('cursor');
      await until(async () => (await followers(gateway)) === 0);
    }
  });
});
