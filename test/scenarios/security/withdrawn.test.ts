import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startSandbox } from '#sandbox';
import { steppedClock } from '../../helpers/clock.ts';
import { startGateway } from '../../helpers/gateway.ts';
import { AUDIENCE, ISSUER, serviceFor } from '../../helpers/service.ts';
import { connect } from '../../helpers/socket.ts';
import { until } from '../../helpers/until.ts';
import { WIRES } from '../../helpers/wire.ts';

const TEN_MINUTES = 600_000;

/** An identity provider that shows the keys which it has not withdrawn. */
async function startProvider() {
  const shown = new Map<string, JWK>();
  const server = createServer((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ keys: [...shown.values()] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    withdraw: (kid: string) => shown.delete(kid),
    /** Shows a key of this name. @returns a token that it has signed. */
    async sign(kid: string): Promise<string> {
      const { publicKey, privateKey } = await generateKeyPair('ES256');
      shown.set(kid, { ...(await exportJWK(publicKey)), kid });
      return new SignJWT({ scope: 'events:read', sub: kid })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setExpirationTime('1y')
        .sign(privateKey);
    },
  };
}

it.each(WIRES)(
  'over %s a stream ends within ten minutes of its key being withdrawn, and those of other keys go on',
  async (transport, wire) => {
    const clock = steppedClock();
    const provider = await startProvider();
    const { jwksUrl } = provider;
    await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    const service = { ...serviceFor(sandbox), keys: { jwksUrl, cooldownMs: 0, maxAgeMs: 0 } };
    await using gateway = await startGateway({
      sandbox,
      webhooks: false,
      config: { service },
      clock,
    });
    const query = 'subscription { events { id cursor } }';
    const follow = async (kid: string) => wire(gateway.graphql, await provider.sign(kid), { query });
    await using stays = await follow('stays');
    await using ends = await follow('ends');
    const streams = [stays, ends];
    await until(() => streams.every(({ heard }) => heard.some(({ kind }) => kind === 'bookmark')));
    const deliver = (id_msg: string) =>
      fetch(gateway.ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
        method: 'POST',
        body: JSON.stringify({ id_msg }),
      });
    const has = (one: typeof ends, id: string) => one.heard.some((heard) => 'id' in heard && heard.id === id);
    await clock.pass(TEN_MINUTES);
    await deliver('before');
    await until(() => streams.every((one) => has(one, 'before')));
    provider.withdraw('ends');
    const wanted =
      transport === 'SSE' ? { kind: 'error', code: 'UNAUTHENTICATED' } : { kind: 'closed', code: 4403 };
    const end = () => ends.heard.find(({ kind }) => kind === wanted.kind);
    // On a busy machine a question may be under way as the key goes, or last longer than one waits for the keys. It is asked again ten
    // minutes later.
    while (end() === undefined) await clock.pass(TEN_MINUTES);
    expect(end()).toMatchObject(wanted);
    await deliver('after');
    await until(() => has(stays, 'after'));
    expect(has(ends, 'after')).toBe(false);
  },
);

it('a socket is closed at the first question after its key was withdrawn, once the minute for which it is believed is over', async () => {
  const provider = await startProvider();
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const service = {
    ...serviceFor(sandbox),
    keys: { jwksUrl: provider.jwksUrl, cooldownMs: 0, maxAgeMs: 0 },
  };
  await using gateway = await startGateway({ sandbox, webhooks: false, config: { service } });
  const socket = await connect(gateway, `Bearer ${await provider.sign('ends')}`);
  const closed = socket.closed();
  provider.withdraw('ends');
  // A caller is believed for a minute.
  const now = performance.now.bind(performance);
  const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61_000);
  onTestFinished(() => later.mockRestore());
  socket.ask('1', '{ eventCursor }');
  expect(await closed).toBe(4403);
  const answer = socket.got.find(({ id }) => id === '1');
  expect(answer?.payload.errors[0].extensions.code).toBe('UNAUTHENTICATED');
});
