import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { connect } from '../helpers/socket.ts';
import { until } from '../helpers/until.ts';
import { startFront } from './faults/front.ts';

const BALANCES = '{ client { accounts(first: 20) { nodes { clabe availableBalance { amount } } } } }';
const CREDITS = 'subscription ($after: Cursor) { moneyIn(after: $after) { id } }';
const PAY = 'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }';

let sandbox: Sandbox;
beforeEach(async () => {
  // A query may be joined however slow the machine is: this clock stands still.
  const now = clock.monotonic();
  const restore = useClock({ ...clock, monotonic: () => now });
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  return async () => {
    restore();
    await sandbox.stop();
  };
});

/** A service that holds back the next reading of the accounts, when it is told to. */
async function startHolding() {
  const held: ServerResponse[] = [];
  let isToHold = false;
  const front = await startFront(sandbox.url, ({ path }, response) => {
    if (!isToHold || !path.includes('/accounts')) return false;
    isToHold = false;
    held.push(response);
    return true;
  });
  return {
    url: front.url,
    /** Holds the next one back. @returns what waits until it is held */
    holdNext() {
      isToHold = true;
      const before = held.length;
      return () => until(() => held.length > before);
    },
    /** Has the gateway read again what is held back. */
    letGo(): void {
      for (const response of held) response.destroy();
    },
    [Symbol.asyncDispose]: () => front[Symbol.asyncDispose](),
  };
}

it.each<[mode: string, how: string, headersFor: (token: string) => Readonly<Record<string, string>>]>(
  ['passthrough', 'service'].flatMap((mode) => [
    [mode, 'with an API key', (token) => ({ authorization: `Bearer ${token}`, 'x-api-key': 'a key' })],
    [mode, 'in small letters', (token) => ({ authorization: `bearer ${token}` })],
  ]),
)(
  'in mode %s, a query over HTTP %s is executed anew once a socket of its caller was told of a credit, or has paid',
  async (mode, _how, headersFor) => {
    await using service = await startHolding();
    const isService = mode === 'service';
    await using gateway = await startGateway({
      sandbox,
      config: {
        upstreamUrl: service.url,
        upstreamReport: true,
        listsMaxAgeMs: 0,
        service: isService ? serviceFor(sandbox) : undefined,
      },
    });
    const token = isService ? await callerToken() : sandbox.accessToken;
    const headers = headersFor(token);
    const world = await control(sandbox, 'GET', '/sandbox');
    const { data } = await gateway.query('{ eventCursor }', {}, headers);
    const socket = await connect(gateway, `Bearer ${token}`);
    const begin = (id: string, query: string, variables: object) =>
      socket.send({ type: 'subscribe', id, payload: { query, variables } });
    const told = (id: string) => until(() => socket.got.find((one) => one.type === 'next' && one.id === id));

    const hearOfCredit = async () => {
      begin('credits', CREDITS, { after: data.eventCursor });
      const { clabe } = world.accounts[0];
      await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '10.00' });
      expect((await told('credits')).payload.errors).toBeUndefined();
    };
    const pay = async () => {
      const input = {
        idempotencyKey: randomUUID(),
        sourceInstrumentId: world.centralizingInstrumentId,
        destinationInstrumentId: world.cardInstrumentIds[0],
        amount: '12.50',
        description: 'Pago',
        externalReference: '7',
      };
      begin('payment', PAY, { input });
      expect((await told('payment')).payload.errors).toBeUndefined();
    };
    for (const change of [hearOfCredit, pay]) {
      const isHeld = service.holdNext();
      const before = gateway.query(BALANCES, {}, headers);
      await isHeld();
      await change();
      const after = await gateway.query(BALANCES, {}, headers);
      expect(after.extensions?.['way']).toMatchObject({ isShared: false });
      // Nor has it joined the REST call that is held back.
      expect(after.extensions?.['upstream']).toEqual([expect.objectContaining({ coalesced: false })]);
      expect(after.errors).toBeUndefined();
      service.letGo();
      await before;
    }
    await socket.close();
  },
);
