import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type TestSandbox } from '../../packages/sandbox/src/index.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';
import { VARIANTS } from '../helpers/variants.ts';

const MONEY_IN = `subscription ($after: Cursor) {
  moneyIn(after: $after) { id cursor amount { amount } payer { name } paymentConcept decision transaction { id status } }
}`;
const CEP = `subscription ($id: ID!) {
  cepStatus(transactionId: $id) { kind cep { status final beneficiaryName } transaction { id } }
}`;
const VALIDATE = `mutation ($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) {
    __typename
    ... on CreatePennyValidationSuccess { transaction { id amount { amount } cep { status validationId } } }
    ... on UserError { code message }
  }
}`;

describe.each(VARIANTS)('on %s', (_variant, sandboxOptions) => {
  let gateway: RunningGateway;
  let sandbox: TestSandbox;
  let token: string;
  let keys = 0;
  beforeAll(async () => {
    sandbox = await createSandbox(sandboxOptions);
    gateway = await startGateway({ sandbox });
    token = sandbox.accessToken;
  });
  afterAll(async () => {
    await gateway.stop();
    await sandbox.close();
  });

  const credit = (amount: string, concept: string) =>
    sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount, payerName: 'Ana Torres', concept });

  async function startValidation(destinationInstrumentId: string | null | undefined): Promise<string> {
    keys += 1;
    const { data, errors } = await gateway.query(VALIDATE, {
      input: {
        idempotencyKey: `validation-${keys}`,
        sourceInstrumentId: sandbox.centralizingInstrumentId,
        destinationInstrumentId,
      },
    });
    expect(errors).toBeUndefined();
    expect(data.createPennyValidation).toMatchObject({
      __typename: 'CreatePennyValidationSuccess',
      transaction: { amount: { amount: '0.01' }, cep: { status: 'PENDING' } },
    });
    return data.createPennyValidation.transaction.id;
  }

  const advance = (seconds: number) => sandbox.advance({ seconds });

  describe.each(TRANSPORTS)('over %s', (transport, subscribe) => {
    it('a credit arrives, with what was read of its transaction', async () => {
      const { data } = await gateway.query('{ eventCursor }');
      await using subscriber = subscribe(gateway.graphql, token, {
        query: MONEY_IN,
        variables: { after: data.eventCursor },
      });
      await credit('1250.00', 'Factura 42');
      const [first] = await subscriber.received(1);
      expect(first?.errors).toBeUndefined();
      expect(first?.data.moneyIn).toMatchObject({
        amount: { amount: '1250.00' },
        payer: { name: 'Ana Torres' },
        paymentConcept: 'Factura 42',
        decision: 'ACCEPTED',
        transaction: { id: expect.any(String) },
      });
    });

    it('a subscriber that gives a cursor gets exactly what came after it, in order', async () => {
      const { data } = await gateway.query('{ eventCursor }');
      for (const amount of ['1.00', '2.00', '3.00', '4.00']) await credit(amount, 'Serie');
      await using first = subscribe(gateway.graphql, token, {
        query: MONEY_IN,
        variables: { after: data.eventCursor },
      });
      await first.received(2);
      const cursor = first.results[1]?.data.moneyIn.cursor;
      await first.leave();

      await using second = subscribe(gateway.graphql, token, {
        query: MONEY_IN,
        variables: { after: cursor },
      });
      await second.received(2);
      await credit('5.00', 'Serie');
      await second.received(3);
      expect(second.results.map(({ data: result }) => result.moneyIn.amount.amount)).toEqual([
        '3.00',
        '4.00',
        '5.00',
      ]);
    });

    it('a receipt is PENDING, then COMPLETED with the holder’s name, and the stream completes', async () => {
      const id = await startValidation(sandbox.clabeInstrumentIds[0]);
      await using subscriber = subscribe(gateway.graphql, token, { query: CEP, variables: { id } });
      await subscriber.received(1);
      await advance(200);
      expect(await subscriber.ended).toBeUndefined();
      const updates = subscriber.results.map(({ data }) => data.cepStatus);
      expect(updates[0]).toMatchObject({ kind: 'SNAPSHOT', cep: { status: 'PENDING', final: false } });
      expect(updates.at(-1)).toMatchObject({
        kind: 'CHANGE',
        cep: { status: 'COMPLETED', final: true, beneficiaryName: expect.any(String) },
        transaction: { id },
      });
    });

    it('a receipt that never comes is DELAYED, then FAILED', async () => {
      const id = await startValidation(sandbox.noReceiptInstrumentId);
      await using subscriber = subscribe(gateway.graphql, token, { query: CEP, variables: { id } });
      await subscriber.received(1);
      await advance(600);
      await until(() => subscriber.results.at(-1)?.data.cepStatus.cep.status === 'DELAYED');
      await advance(12_000);
      expect(await subscriber.ended).toBeUndefined();
      const states = subscriber.results.map(({ data }) => data.cepStatus.cep.status);
      expect([...new Set(states)]).toEqual(['PENDING', 'DELAYED', 'FAILED']);
    });

    it.each([
      ['a transaction that is no penny validation', () => sandbox.transactions.refundableCreditId],
      ['a malformed id', () => '../banks'],
    ])('the receipt of %s is BAD_USER_INPUT', async (_case, id) => {
      await using subscriber = subscribe(gateway.graphql, token, { query: CEP, variables: { id: id() } });
      await subscriber.ended;
      expect(subscriber.results[0]?.errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
    });

    it.each([
      ['nonsense', 'CURSOR_INVALID'],
      ['', 'BAD_USER_INPUT'],
    ])('the cursor %j ends the stream with %s', async (after, code) => {
      await using subscriber = subscribe(gateway.graphql, token, { query: MONEY_IN, variables: { after } });
      await subscriber.ended;
      expect(subscriber.results[0]?.errors?.[0]).toMatchObject({ extensions: { code } });
    });

    it('nobody subscribes without a token that the upstream accepts', async () => {
      await using subscriber = subscribe(gateway.graphql, 'nonsense', { query: MONEY_IN });
      const end = await subscriber.ended;
      if (transport === 'WebSocket') expect(end).toMatchObject({ code: 4403 });
      else
        expect(subscriber.results[0]?.errors?.[0]).toMatchObject({ extensions: { code: 'UNAUTHENTICATED' } });
    });
  });

  describe('the retained log', () => {
    const EVENTS = `query ($first: Int, $after: Cursor, $last: Int, $before: Cursor) {
    events(first: $first, after: $after, last: $last, before: $before) {
      nodes { id type cursor ... on MoneyInEvent { amount { amount } } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }`;

    it('reads on from a cursor, and back from the newest', async () => {
      const { data: start } = await gateway.query('{ eventCursor }');
      for (const amount of ['11.00', '12.00', '13.00']) await credit(amount, 'Historia');
      const forward = await gateway.query(EVENTS, { first: 2, after: start.eventCursor });
      expect(forward.errors).toBeUndefined();
      expect(
        forward.data.events.nodes.map((node: { amount: { amount: string } }) => node.amount.amount),
      ).toEqual(['11.00', '12.00']);
      expect(forward.data.events.pageInfo.hasNextPage).toBe(true);
      const back = await gateway.query(EVENTS, { last: 2 });
      expect(
        back.data.events.nodes.map((node: { amount: { amount: string } }) => node.amount.amount),
      ).toEqual(['12.00', '13.00']);
      expect(back.data.events.pageInfo.hasPreviousPage).toBe(true);
    });
  });

  describe('server-sent events', () => {
    const stream = async (headers: Record<string, string>): Promise<ReadableStreamDefaultReader<string>> => {
      const response = await fetch(gateway.graphql, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'text/event-stream',
          ...headers,
        },
        body: JSON.stringify({ query: 'subscription { moneyIn { cursor amount { amount } } }' }),
      });
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      // A proxy that compresses, as that of Next does, would hold events back.
      expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
      if (response.body === null) throw new Error('The stream has no body.');
      return response.body.pipeThrough(new TextDecoderStream()).getReader();
    };
    const readUntil = async (
      reader: ReadableStreamDefaultReader<string>,
      pattern: RegExp,
    ): Promise<string> => {
      for (let text = ''; ; ) {
        if (pattern.test(text)) return text;
        const { done, value } = await reader.read();
        if (done) throw new Error(`The stream ended: ${text}`);
        text += value;
      }
    };

    it('carry the cursor as their id, and Last-Event-ID continues behind it', async () => {
      const reader = await stream({});
      await credit('21.00', 'Uno');
      const first = await readUntil(reader, /data: .*\n\n/);
      await reader.cancel();
      const id = /^event: next\nid: (\S+)$/m.exec(first)?.[1] ?? '';
      expect(first).toContain(`"cursor":"${id}"`);

      await credit('22.00', 'Dos');
      await credit('23.00', 'Tres');
      const resumed = await stream({ 'last-event-id': id });
      const rest = await readUntil(resumed, /"23\.00".*\n\n/);
      await resumed.cancel();
      expect([...rest.matchAll(/"amount":"([\d.]+)"/g)].map(([, amount]) => amount)).toEqual([
        '22.00',
        '23.00',
      ]);
    });
  });
});
