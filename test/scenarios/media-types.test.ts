import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Sandbox } from '../../packages/sandbox/src/index.ts';
import { control, sendQuery, startGateway } from '../helpers/gateway.ts';

const INTERNAL = `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) {
  ... on CreateInternalTransactionSuccess { replayed } } }`;

/** A payment within the client, with a new key. */
async function inputOn(sandbox: Sandbox) {
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  const world: any = await control(sandbox, 'GET', '/sandbox');
  const destination = world.instruments.find(
    ({ role, status }: { role: string; status: string }) => role === 'internal' && status === 'ACTIVE',
  );
  return {
    idempotencyKey: randomUUID(),
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: destination.id,
    amount: '12.34',
    description: 'rent',
    externalReference: '7654321',
  };
}

it('pays nothing where the answer could not be written, and says which forms can be', async () => {
  await using gateway = await startGateway();
  const input = await inputOn(gateway.sandbox);
  for (const accept of [
    'text/html',
    'image/png, application/xml',
    'application/json; charset=utf-16',
    '/',
    'text',
  ])
    expect(await gateway.query(INTERNAL, { input }, { accept })).toMatchObject({
      status: 406,
      errors: [
        {
          message: expect.stringMatching(
            /^No answer is .*: accept one of application\/json, application\/graphql-response\+json, multipart\/mixed, text\/event-stream/,
          ),
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
  expect(await gateway.query(INTERNAL, { input })).toMatchObject({ data: { paid: { replayed: false } } });
});

it.each([
  ['fast path', { 'content-type': 'application/json' }],
  ['Yoga', { 'content-type': 'application/json; charset=iso-8859-1' }],
  ['not compressed', { 'content-type': 'application/json', 'content-encoding': 'identity' }],
])('pays nothing for a body in another encoding than UTF-8: %s', async (_, form) => {
  await using gateway = await startGateway();
  const input = await inputOn(gateway.sandbox);
  const body = JSON.stringify({
    query: INTERNAL,
    variables: { input: { ...input, description: 'Se\u00f1al' } },
  });
  const sent = await fetch(gateway.graphql, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.sandbox.accessToken}`, ...form },
    body: Buffer.from(body, 'latin1'),
  });
  expect(sent.status).toBe(400);
  expect(await sent.json()).toEqual({
    errors: [
      {
        message: expect.stringContaining('is not UTF-8'),
        extensions: { code: 'BAD_USER_INPUT', requestId: sent.headers.get('x-request-id') },
      },
    ],
  });
  expect(await gateway.query(INTERNAL, { input })).toMatchObject({ data: { paid: { replayed: false } } });
});

it('answers what accepts anything, a whole type, or one of its forms among others', async () => {
  await using gateway = await startGateway();
  for (const accept of [
    '*/*',
    'application/*',
    'text/html, APPLICATION/JSON;q=0.1',
    'text/html,*/*;q=0.8',
    '',
  ]) {
    const answer = await sendQuery(gateway.graphql, '{ __typename }', {}, { accept });
    expect({ accept, ...answer }).toMatchObject({ accept, status: 200, data: { __typename: 'Query' } });
  }
});

it.each(['application/json', 'multipart/mixed', 'text/event-stream'])(
  'names no coding of an answer of %s, which a client would have to undo',
  async (accept) => {
    await using gateway = await startGateway({ webhooks: false });
    for (const query of ['{ __typename }', 'subscription { nothing }']) {
      const headers = { accept, 'content-type': 'application/json' };
      const answer = await fetch(gateway.graphql, {
        method: 'POST',
        headers,
        body: JSON.stringify({ query }),
      });
      await answer.text();
      expect(answer.headers.get('content-type')).toContain(accept);
      expect(answer.headers.get('content-encoding')).toBeNull();
    }
  },
);

it('runs nothing of a list of operations, and says how to send them', async () => {
  await using gateway = await startGateway();
  const input = await inputOn(gateway.sandbox);
  const payment = { query: INTERNAL, variables: { input } };
  for (const list of [[payment], [payment, { query: '{ __typename }' }], []]) {
    const sent = await fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(list),
    });
    expect(sent.status).toBe(400);
    expect(await sent.json()).toMatchObject({
      errors: [
        {
          message: expect.stringContaining('send each in a request of its own'),
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ],
    });
  }
  expect(await gateway.query(INTERNAL, { input })).toMatchObject({ data: { paid: { replayed: false } } });
});
