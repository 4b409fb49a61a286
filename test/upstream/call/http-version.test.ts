import { expect, it } from 'vitest';
import { createDecider } from '../../../src/ingress/decider.ts';
import { createBreaker } from '../../../src/upstream/call/breaker.ts';
import { fixedCredential } from '../../../src/upstream/call/credential.ts';
import { createHttp } from '../../../src/upstream/call/http.ts';
import { createRest } from '../../../src/upstream/call/rest.ts';
import { startEitherHttp } from '../../helpers/either-http.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID, HTTP } from '../../helpers/http-stub.ts';

// Over HTTP/2 undici sends a request again by itself that a server says it has refused: a payment is sent again by the gateway alone.
it('the REST service is asked over HTTP/1.1, also where it would rather have HTTP/2', async () => {
  await using server = await startEitherHttp();
  const http = createHttp(
    server.url,
    createBreaker(() => performance.now()),
    HTTP,
  );
  const rest = createRest({
    http,
    clientId: CLIENT_ID,
    requester: { caller: 'caller', group: 'caller' },
    authorize: fixedCredential({ authorization: 'Bearer token' }),
    headers: {},
    timeoutMs: 5_000,
    deadline: Date.now() + 20_000,
  });
  expect(await rest.get('/v1/clients/{clientId}/accounts')).toEqual({});
  await http.close();
  expect(server.versions).toEqual(['1.1']);
});

it('the decider is asked over HTTP/1.1, also where it would rather have HTTP/2', async () => {
  await using server = await startEitherHttp();
  const decider = createDecider(`${server.url}/decide`, recordingLogger());
  expect(await decider.ask('{}')).toEqual({ decision: 'ACCEPTED' });
  await decider.close();
  expect(server.versions).toEqual(['1.1']);
});
