import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { Secret } from '../../../src/common/secret.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { type Front, startFront } from './front.ts';
import { documentOf, MUTATIONS, movementsOf, payable } from './payments.ts';

type Write = (response: ServerResponse) => void;

const page =
  (status: number, body: string | Buffer = '', headers: Readonly<Record<string, string>> = {}): Write =>
  (response) =>
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body);
const json = { 'content-type': 'application/json' };
const gzip = { 'content-encoding': 'gzip' };

/** What stands between the gateway and the service, and what each answers with on its own account. */
const LAYERS: readonly (readonly [layer: string, write: Write])[] = [
  ...[400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 431, 451].map(
    (status) => [`a firewall's page with ${status}`, page(status, '<h1>Request blocked</h1>')] as const,
  ),
  ['an empty 400', page(400)],
  ['an empty 401', page(401)],
  ['an API manager of another kind', page(403, '{"code":403,"message":"Forbidden"}', json)],
  ['a gateway of gRPC', page(400, '{"code":3,"message":"upstream","details":[]}', json)],
  [
    'a cloud whose errors have the same form',
    page(
      429,
      '{"code":8,"message":"Quota","details":[{"reason":"RATE_LIMIT","domain":"googleapis.com","metadata":{}}]}',
      json,
    ),
  ],
  ['a cut off error of the service', page(400, '{"code":9,"message":"API Error","details":[{"rea', json)],
  ['a load balancer', page(503, '<h1>503 Service Unavailable</h1>')],
  ['a service mesh', page(503, 'upstream connect error or disconnect/reset before headers')],
  ['a proxy that gives up', page(504)],
  ['a proxy that waits for the request', page(408)],
  ['a captive portal', page(200, '<html>Welcome to our network</html>')],
  ['an empty 200', page(200)],
  ['a 204', page(204)],
  ['a cut off transaction', page(200, '{"id":"9be2b1a5-6a1c-4b52-9b7b-0d5a2f1c7e11","amou', json)],
  ['compressed garbage', page(200, Buffer.from('not gzip at all'), { ...json, ...gzip })],
  ['a compressed page', page(400, gzipSync('<h1>Bad Request</h1>'), gzip)],
  ['a redirect', page(302, '', { location: 'https://example.mx/login' })],
  ['a permanent redirect', page(308, '', { location: '/v1/elsewhere' })],
];

const MODES = ['passthrough', 'service'] as const;
const STORES = ['node:sqlite', 'Redis'] as const;

describe.each(STORES.flatMap((store) => MODES.map((mode) => [mode, store] as const)))(
  'in %s mode over %s',
  (mode, store) => {
    let cleanup: AsyncDisposableStack;
    let sandbox: Sandbox;
    let front: Front;
    let gateway: RunningGateway;
    let headers: Readonly<Record<string, string>>;
    let payments = 0;
    /** What answers the next payments, and whether the service has them first. */
    let answers: { readonly write: Write; readonly after: boolean }[] = [];

    beforeAll(async () => {
      cleanup = new AsyncDisposableStack();
      const choices = { repeatedRefund: 'performed' } as const;
      sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices });
      cleanup.defer(() => sandbox.stop());
      front = cleanup.use(
        await startFront(sandbox.url, ({ method, path, headers, body }, response) => {
          const next = method === 'POST' && path.includes('/transactions') ? answers.shift() : undefined;
          if (next === undefined) return false;
          const { host: _, 'content-length': __, connection: ___, ...passed } = headers;
          const served = next.after
            ? fetch(`${sandbox.url}${path}`, { method, headers: passed as Record<string, string>, body })
            : undefined;
          void Promise.resolve(served).then(() => next.write(response));
          return true;
        }),
      );
      const redisUrl = store === 'Redis' ? new Secret(cleanup.use(await startRedis()).url) : undefined;
      const service = mode === 'service' ? serviceFor(sandbox) : undefined;
      const token = mode === 'service' ? await callerToken() : sandbox.accessToken;
      headers = { authorization: `Bearer ${token}` };
      gateway = cleanup.use(
        await startGateway({
          sandbox,
          webhooks: false,
          config: { upstreamUrl: front.url, redisUrl, service },
        }),
      );
    });
    afterAll(() => cleanup.disposeAsync());

    /** How many payments have left the gateway. */
    const sent = (): number => front.changes.filter(({ path }) => path.includes('/transactions')).length;
    const pay = async (mutation: (typeof MUTATIONS)[number], input: object) => {
      const { data, errors } = await gateway.query(documentOf(mutation), { input }, headers);
      expect(errors).toBeUndefined();
      return data.result;
    };

    describe.each(MUTATIONS)('%s', (mutation) => {
      it.each(
        LAYERS.flatMap(([layer, write]) =>
          [false, true].map((after) => [after ? 'after' : 'before', layer, write] as const),
        ),
      )(
        'moves once at most, and is never told as refused: %s the service has it, %s answers',
        async (when, layer, write) => {
          const after = when === 'after';
          payments += 1;
          const tag = `layers ${payments}`;
          const payment = await payable(sandbox, mutation, tag);
          // Twice alike: where it is recovered from, it strikes again.
          answers = [0, 1].map(() => ({ write, after }));
          const before = sent();
          const first = await pay(mutation, payment.input);
          const moved = await movementsOf(sandbox, tag);
          if (mutation === 'createMoneyOut' && !layer.includes('409')) {
            expect(first).toMatchObject({ replayed: false, moved: { id: moved[0]?.transactionId } });
            expect(sent() - before).toBe(3);
          } else if (mutation === 'createMoneyOut') {
            expect(['CreateMoneyOutSuccess', 'OutcomeUnknown']).toContain(first.__typename);
          } else {
            expect(first).toMatchObject({
              __typename: 'OutcomeUnknown',
              reason: 'NO_ANSWER',
              safeToRetry: false,
            });
            expect(sent() - before).toBe(1);
            expect(moved).toHaveLength(after ? 1 : 0);
          }
          answers = [];
          const again = await pay(mutation, payment.input);
          if (mutation !== 'createMoneyOut') expect(again.__typename).toBe('OutcomeUnknown');
          expect((await movementsOf(sandbox, tag)).length).toBeLessThanOrEqual(1);
          if (mutation === 'createMoneyOut') expect(await movementsOf(sandbox, tag)).toHaveLength(1);
        },
      );
    });
  },
);
