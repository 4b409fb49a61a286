import { expect, it } from 'vitest';
import type { Authenticator } from '../../src/auth/authenticator.ts';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import { systemAlarmClock } from '../../src/common/alarms.ts';
import { CallerKeys } from '../../src/operation/caller-keys.ts';
import { type ContextOptions, createContextFactory } from '../../src/operation/context.ts';
import type { HttpRequest } from '../../src/upstream/call/exchange.ts';

/** A passthrough caller: whatever its tokens, all of its client take turns. */
const CALLER: Caller = {
  clientId: 'c1',
  customerId: undefined,
  subject: undefined,
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt: undefined,
};

it.each(['streams', 'operations'] as const)(
  'an operation of the urgency %s asks who is calling, calls the service and reads the log with that urgency, in the turns of its client',
  async (urgency) => {
    const said: unknown[] = [];
    const auth: Partial<Authenticator> = {
      identify(_token, _restFor, _fresh, asker) {
        said.push(['identified', asker.urgency]);
        return CALLER;
      },
      strangerOf: (_token, address) => ({ caller: address, group: address }),
      authorize: () => () => ({ authorization: 'Bearer t1' }),
      upstreamIdentity: (credential) => credential,
    };
    const http = {
      async send({ party }: HttpRequest) {
        said.push(['called', party.urgency]);
        return { kind: 'answered', status: 200, body: {}, text: '{}', retryAfterMs: undefined };
      },
    };
    const turns: ContextOptions['turns'] = {
      turn(which, key) {
        said.push(['took a turn', which, key]);
        return undefined;
      },
    };
    const createContext = createContextFactory({
      auth,
      http,
      turns,
      callerKeys: new CallerKeys(),
      clock: systemAlarmClock,
      operationTimeoutMs: 30_000,
      upstreamTimeoutMs: 10_000,
      onCall: () => undefined,
      lists: { of: () => ({}) },
      // What an operation needs that makes one change, and looks into the log.
    } as unknown as ContextOptions);
    const { identity, reads, budget } = createContext(
      {
        requestId: 'r1',
        authorization: 'Bearer t1',
        apiKey: undefined,
        lastEventId: undefined,
        waiters: undefined,
        closeSockets: undefined,
      },
      urgency,
    );
    await identity.identify();
    await reads.session.rest.send('DELETE', '/v1/anything');
    await budget.log.turn();
    expect(said).toEqual([
      ['identified', urgency],
      ['called', urgency],
      ['took a turn', urgency, 'client c1'],
    ]);
  },
);
