import { describe, expect, it } from 'vitest';
import { type Caller, SCOPES } from '../../src/auth/caller.ts';
import type { Requester } from '../../src/common/party.ts';
import {
  CallerKeys,
  requesterOf,
  requesterOfAddress,
  requesterOfGateway,
  requesterOfReceipts,
} from '../../src/operation/caller-keys.ts';
import { streamHolder } from '../../src/operation/streams.ts';

const callerOf = (given: Partial<Caller> = {}): Caller => ({
  clientId: 'c1',
  customerId: undefined,
  subject: undefined,
  keyOwner: undefined,
  scopes: SCOPES,
  expiresAt: undefined,
  ...given,
});

/** Every way in which callers differ, each in two values. */
const CALLERS: readonly Caller[] = ['c1', 'c2'].flatMap((clientId) =>
  [undefined, 'k1', 'k2'].flatMap((customerId) =>
    [undefined, 'alma', 'berta'].map((subject) => callerOf({ clientId, customerId, subject })),
  ),
);

describe('whose an operation is', () => {
  it('is its subject’s, and its token’s where it has none', () => {
    expect(requesterOf(callerOf({ subject: 'alma' }), 't1')).toEqual(
      requesterOf(callerOf({ subject: 'alma' }), 't2'),
    );
    expect(requesterOf(callerOf(), 't1').caller).not.toBe(requesterOf(callerOf(), 't2').caller);
    expect(requesterOf(callerOf(), 't1').group).toBe(requesterOf(callerOf(), 't2').group);
  });

  it('stands for a client or a customer: no two of these share what one may have', () => {
    const groupOf = (caller: Caller) => requesterOf(caller, 't').group;
    expect(groupOf(callerOf({ clientId: 'c1' }))).not.toBe(groupOf(callerOf({ clientId: 'c2' })));
    const [one, two] = [callerOf({ customerId: 'k1' }), callerOf({ customerId: 'k2' })];
    expect(groupOf(one)).not.toBe(groupOf(two));
    expect(groupOf(one)).not.toBe(groupOf({ ...one, clientId: 'c2' }));
  });

  it('where several clients are served, is a client’s share, and no two of different clients are one caller', () => {
    const requesters = CALLERS.map((caller) => ({
      caller,
      requester: requesterOf({ ...caller, amongClients: true }, 't'),
    }));
    for (const { caller, requester } of requesters) {
      for (const other of requesters) {
        const isSameClient = caller.clientId === other.caller.clientId;
        expect(requester.group === other.requester.group).toBe(isSameClient);
        if (!isSameClient) expect(requester.caller).not.toBe(other.requester.caller);
      }
    }
  });
});

it('a client for which the service fails counts once, whoever reads for it: its callers, and the gateway itself', () => {
  const requesters = [
    requesterOf(callerOf({ amongClients: true }), 't'),
    requesterOf(callerOf({ amongClients: true, customerId: 'k1' }), 't'),
    requesterOfGateway('settling', 'c1'),
    requesterOfGateway('reconciling', 'c1'),
  ];
  const failing = (requester: Requester) => requester.failureDomain ?? requester.group;
  expect(new Set(requesters.map(failing)).size).toBe(1);
  expect(failing(requesterOfGateway('settling', 'c2'))).not.toBe(
    failing(requesterOfGateway('settling', 'c1')),
  );
  // Each has places of its own all the same.
  expect(new Set(requesters.map(({ group }) => group)).size).toBe(3);
});

describe('the key by which a credential takes turns', () => {
  it('is its address’s until somebody has verified it', () => {
    const keys = new CallerKeys();
    expect(keys.turnKeyOf('Bearer t1', '192.0.2.1')).toBe(requesterOfAddress('192.0.2.1').caller);
    keys.note('t1', callerOf({ subject: 'alma' }));
    expect(keys.turnKeyOf('Bearer t1', '192.0.2.1')).toBe(
      requesterOf(callerOf({ subject: 'alma' }), 't1').caller,
    );
    expect(keys.turnKeyOf('Bearer t2', '192.0.2.1')).toBe(requesterOfAddress('192.0.2.1').caller);
    expect(keys.turnKeyOf(undefined, '192.0.2.1')).toBe(requesterOfAddress('192.0.2.1').caller);
  });

  it('is its client’s where it names nobody, and where several clients are served', () => {
    const keys = new CallerKeys();
    const [one, two] = [keys.note('t1', callerOf()), keys.note('t2', callerOf())];
    expect(one.turnKey).toBe(two.turnKey);
    const alma = keys.note('t3', callerOf({ subject: 'alma', amongClients: true }));
    const berta = keys.note('t4', callerOf({ subject: 'berta', amongClients: true }));
    expect(alma.turnKey).toBe(berta.turnKey);
    expect(
      keys.note('t5', callerOf({ clientId: 'c2', subject: 'alma', amongClients: true })).turnKey,
    ).not.toBe(alma.turnKey);
  });

  it('is found however the scheme of the credential is written', () => {
    const keys = new CallerKeys();
    const { turnKey } = keys.note('t1', callerOf({ subject: 'alma' }));
    for (const authorization of ['Bearer t1', 'bearer t1', 'BEARER  t1 ', 'Bearer t1'])
      expect(keys.turnKeyOf(authorization, undefined)).toBe(turnKey);
    for (const authorization of ['Basic t1', 't1', 'Bearer t1 t1'])
      expect(keys.turnKeyOf(authorization, undefined)).not.toBe(turnKey);
  });
});

it('look-ups of receipts are each customer’s own, and none waits in a reader’s queue', () => {
  for (const amongClients of [false, true]) {
    const whose = CALLERS.map((caller) => requesterOfReceipts({ ...caller, amongClients }));
    const distinct = new Set(whose.map(({ caller, group }) => `${caller} of ${group}`));
    // Two clients, each with its own feed and two customers.
    expect(distinct.size).toBe(6);
    const readers = new Set(CALLERS.map((caller) => requesterOf({ ...caller, amongClients }, 't').caller));
    for (const { caller } of whose) expect(readers).not.toContain(caller);
  }
});

it('streams are counted for each subject and each customer of each client', () => {
  const requesters = CALLERS.map(streamHolder);
  expect(new Set(requesters.map(({ caller }) => caller)).size).toBe(CALLERS.length);
  expect(new Set(requesters.map(({ clientId }) => clientId)).size).toBe(2);
});

it('bytes of streams are counted together for the group that shares the seats of REST calls, where it has several callers', () => {
  for (const amongClients of [false, true]) {
    const served = CALLERS.filter(({ clientId }) => amongClients || clientId === 'c1');
    const callers = served.map((caller) => ({ ...caller, amongClients }));
    for (const one of callers) {
      for (const other of callers) {
        if (streamHolder(one).caller === streamHolder(other).caller) continue;
        const areTogether = requesterOf(one, 't').group === requesterOf(other, 't').group;
        const [ofOne, ofOther] = [streamHolder(one).group, streamHolder(other).group];
        expect(ofOne !== undefined && ofOne === ofOther).toBe(areTogether);
      }
    }
  }
});
