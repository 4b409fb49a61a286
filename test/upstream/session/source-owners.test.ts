import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createSourceOwners } from '../../../src/upstream/session/source-owners.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { stillTime } from '../../helpers/still-time.ts';

const TRANSACTION = randomUUID();
const [ONE, OTHER] = [randomUUID(), randomUUID()];

/** A service that knows the transaction for clients of which the test says so, with an owner of its own for each. */
async function start() {
  const known = new Map<string, string>();
  const upstream = await startUpstream((request, response) => {
    const clientId = /clients\/([^/]+)/.exec(request.url ?? '')?.[1] ?? '';
    const ownerId = known.get(clientId);
    if (ownerId === undefined) json(response, {}, 404);
    else json(response, { id: TRANSACTION, sourceInstrument: { id: randomUUID(), ownerId } });
  });
  const owners = createSourceOwners();
  return {
    known,
    requests: upstream.requests,
    find: (clientId: string, isSettled: boolean) =>
      owners.find(upstream.restOf({ clientId, deadline: Date.now() + 10_000 }), TRANSACTION, isSettled),
    isKnown: (clientId: string) => owners.known(clientId, TRANSACTION.toUpperCase(), true),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

it('what one client’s transaction has told is told of no other client’s of the same id', async () => {
  await using service = await start();
  service.known.set(ONE, 'owner of one').set(OTHER, 'owner of the other');
  for (let round = 0; round < 2; round += 1) {
    expect(await service.find(ONE, true)).toBe('owner of one');
    expect(service.isKnown(ONE)).toEqual({ owner: 'owner of one' });
    expect(await service.find(OTHER, true)).toBe('owner of the other');
  }
  expect(service.requests).toHaveLength(2);
});

it('a transaction that may be about to appear is asked for until it does, another one once in a while', async () => {
  await using service = await start();
  expect(await service.find(ONE, false)).toBeUndefined();
  expect(service.isKnown(ONE)).toBeUndefined();
  service.known.set(ONE, 'owner');
  expect(await service.find(ONE, false)).toBe('owner');
  expect(await service.find(OTHER, true)).toBeUndefined();
  expect(await service.find(OTHER, true)).toBeUndefined();
  expect(service.requests).toHaveLength(3);
  // Another message of the same transaction.
  service.known.set(OTHER, 'owner of the other');
  expect(await service.find(OTHER, false)).toBe('owner of the other');
});

it('one that was not known is asked for again after a minute, and then known', async () => {
  await using service = await start();
  using time = stillTime();
  expect(await service.find(ONE, true)).toBeUndefined();
  service.known.set(ONE, 'owner');
  await time.pass(59_000);
  expect(await service.find(ONE, true)).toBeUndefined();
  await time.pass(2_000);
  expect(await service.find(ONE, true)).toBe('owner');
});

it('where the transaction does not say whose its source is, the instrument does unless it names two, and it is read once', async () => {
  const twice = randomUUID();
  const instruments: Record<string, object> = {
    [ONE]: { ownerId: 'Owner', customerId: 'owner' },
    [twice]: { ownerId: 'owner', customerId: 'customer' },
    [OTHER]: { ownerId: 'None', customerId: 'customer' },
  };
  await using upstream = await startUpstream(({ url = '' }, response) => {
    const [, kind, id = ''] = /(instruments|transactions)\/([^/?]+)/.exec(url) ?? [];
    if (kind === 'transactions')
      json(response, { id, ...(id === TRANSACTION ? {} : { sourceInstrument: { id, ownerId: null } }) });
    else if (instruments[id] === undefined) json(response, {}, 404);
    else json(response, { id, ...instruments[id] });
  });
  const owners = createSourceOwners();
  for (const [id, owner] of [
    [ONE, 'Owner'],
    [twice, null],
    [OTHER, 'customer'],
    [TRANSACTION, null],
  ] as const) {
    const rest = upstream.restOf({ clientId: ONE, deadline: Date.now() + 10_000 });
    for (let time = 0; time < 2; time += 1) expect(await owners.find(rest, id, true), id).toBe(owner);
    expect(owners.known(ONE, id, true)).toEqual({ owner });
  }
  expect(upstream.requests.filter((url) => url.includes('instruments'))).toHaveLength(3);
});

it('an instrument that was not there for a moment is asked for again, as the transaction is', async () => {
  let isThere = false;
  await using upstream = await startUpstream(({ url = '' }, response) => {
    if (url.includes('transactions')) json(response, { id: TRANSACTION, sourceInstrument: { id: ONE } });
    else if (isThere) json(response, { id: ONE, ownerId: 'owner' });
    else json(response, {}, 404);
  });
  using time = stillTime();
  const owners = createSourceOwners();
  const find = (isSettled: boolean) =>
    owners.find(upstream.restOf({ clientId: ONE, deadline: Date.now() + 600_000 }), TRANSACTION, isSettled);
  expect(await find(false)).toBeUndefined();
  expect(owners.known(ONE, TRANSACTION, true)).toBeUndefined();
  expect(await find(true)).toBeUndefined();
  isThere = true;
  await time.pass(59_000);
  expect(await find(true)).toBeUndefined();
  await time.pass(2_000);
  expect(await find(true)).toBe('owner');
});
