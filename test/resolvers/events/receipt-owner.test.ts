import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Party } from '../../../src/common/party.ts';
import type { UnattributedReason } from '../../../src/events/metrics.ts';
import { requesterOfReceipts } from '../../../src/operation/caller-keys.ts';
import { LogReadingError } from '../../../src/resolvers/errors.ts';
import { createReceiptOwner, type FindOwner } from '../../../src/resolvers/events/receipt-owner.ts';
import { errorOfAnswer, UpstreamError } from '../../../src/upstream/call/errors.ts';
import { ReceiptPatience } from '../../../src/upstream/session/receipt-patience.ts';
import { createSourceOwners } from '../../../src/upstream/session/source-owners.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';

const CLIENT = randomUUID();
const OWNER = randomUUID();

const receiptOf = (bodyId: string | null, receivedAt = new Date()) => ({
  id: randomUUID(),
  receivedAt: receivedAt.toISOString(),
  bodyId,
});

const readerOf = (patience = new ReceiptPatience()) => ({
  patience,
  requester: requesterOfReceipts({ clientId: CLIENT }),
});

function start(find: FindOwner) {
  const unattributed: UnattributedReason[] = [];
  const ownerOf = createReceiptOwner({ known: () => undefined, find }, 5_000, (_client, _event, reason) =>
    unattributed.push(reason),
  );
  return { ownerOf, unattributed };
}

it('what many ask at the same time is read once', async () => {
  let reads = 0;
  const { ownerOf } = start(async () => {
    reads += 1;
    await wait(10);
    return OWNER;
  });
  const receipt = receiptOf(randomUUID());
  const answers = Array.from({ length: 100 }, () => ownerOf(CLIENT, receipt, readerOf()));
  expect(new Set(await Promise.all(answers))).toEqual(new Set([OWNER]));
  expect(reads).toBe(1);
});

it('a receipt for which alone the service fails is given up, however much it answers for others', async () => {
  const failing = randomUUID();
  const { ownerOf, unattributed } = start(async (_party, _client, id) => {
    if (id === failing) throw new UpstreamError('UPSTREAM_UNAVAILABLE', 'No.');
    return OWNER;
  });
  const patience = new ReceiptPatience();
  let isOver = false;
  const given = ownerOf(CLIENT, receiptOf(failing), readerOf(patience)).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    expect(await ownerOf(CLIENT, receiptOf(randomUUID()), readerOf(patience))).toBe(OWNER);
    await wait(50);
  }
  expect(await given).toBeNull();
  expect(unattributed).toEqual(['unavailable']);
});

it('an outage is borne once by one reader, and again by the next', async () => {
  let reads = 0;
  const { ownerOf, unattributed } = start(async () => {
    reads += 1;
    throw new UpstreamError('UPSTREAM_UNAVAILABLE', 'No.');
  });
  const patience = new ReceiptPatience();
  expect(await ownerOf(CLIENT, receiptOf(randomUUID()), readerOf(patience))).toBeNull();
  const before = reads;
  const others = Array.from({ length: 100 }, () =>
    ownerOf(CLIENT, receiptOf(randomUUID()), readerOf(patience)),
  );
  await Promise.all(others);
  expect(reads - before).toBeLessThanOrEqual(1);
  expect(unattributed).toHaveLength(101);
  expect(await ownerOf(CLIENT, receiptOf(randomUUID()), readerOf())).toBeNull();
  expect(reads - before).toBeGreaterThan(3);
});

it('one that names no transaction is asked of nobody', async () => {
  const { ownerOf, unattributed } = start(() => Promise.reject(new Error('nothing is read')));
  expect(await ownerOf(CLIENT, receiptOf(null), readerOf())).toBeNull();
  expect(unattributed).toEqual(['unnamed']);
});

it('one of which the service is known to know nothing is nobody’s also for a reader that may have nothing asked', async () => {
  const unattributed: UnattributedReason[] = [];
  const ownerOf = createReceiptOwner(
    { known: () => ({ owner: undefined }), find: async () => undefined },
    5_000,
    (_client, _event, reason) => unattributed.push(reason),
  );
  const reader = { ...readerOf(), mayAsk: () => false };
  // What it is known to know nothing of is an old one.
  expect(await ownerOf(CLIENT, receiptOf(randomUUID(), new Date(0)), reader)).toBeNull();
  expect(unattributed).toEqual(['unknown']);
});

it('one that the service refuses is not asked for again at once', async () => {
  let reads = 0;
  const { ownerOf, unattributed } = start(async () => {
    reads += 1;
    throw errorOfAnswer({ kind: 'answered', status: 400, body: {}, text: '{}', retryAfterMs: undefined });
  });
  const receipt = receiptOf(randomUUID());
  for (let time = 0; time < 3; time += 1) expect(await ownerOf(CLIENT, receipt, readerOf())).toBeNull();
  expect(reads).toBe(1);
  expect(unattributed).toEqual(['refused', 'refused', 'refused']);
});

const refusal = (status: number) =>
  errorOfAnswer({ kind: 'answered', status, body: {}, text: '{}', retryAfterMs: undefined });

it('one whose reading all have given up, as it took too long, is read anew', async () => {
  let reads = 0;
  const find: FindOwner = () => {
    reads += 1;
    return reads === 1 ? new Promise(() => {}) : Promise.resolve(OWNER);
  };
  const ownerOf = createReceiptOwner({ known: () => undefined, find }, 200, () => {});
  // Of an older one each try asks for the same.
  const receipt = receiptOf(randomUUID(), new Date(0));
  const both = [ownerOf(CLIENT, receipt, readerOf()), ownerOf(CLIENT, receipt, readerOf())];
  expect(await Promise.all(both)).toEqual([OWNER, OWNER]);
  expect(reads).toBeGreaterThan(1);
});

it('one whose reading was given up is read no third time when that one ends at last', async () => {
  const readings: (PromiseWithResolvers<string> & { readonly party: Party })[] = [];
  const find: FindOwner = (party) => {
    const reading = { ...Promise.withResolvers<string>(), party };
    readings.push(reading);
    return reading.promise;
  };
  const ownerOf = createReceiptOwner({ known: () => undefined, find }, 2_000, () => {});
  const receipt = receiptOf(randomUUID(), new Date(0));
  const both = [ownerOf(CLIENT, receipt, readerOf()), ownerOf(CLIENT, receipt, readerOf())];
  // Both wait for the second reading: one that came after its end would begin a third.
  while (readings[1]?.party.waiters.size !== 2) await new Promise(setImmediate);
  readings[0]?.resolve('too late');
  await new Promise(setImmediate);
  const third = ownerOf(CLIENT, receipt, readerOf());
  readings[1]?.resolve(OWNER);
  expect(await Promise.all([...both, third])).toEqual([OWNER, OWNER, OWNER]);
  expect(readings).toHaveLength(2);
});

it('one that is refused for one client is asked for by another', async () => {
  const other = randomUUID();
  const { ownerOf } = start(async (_party, client) => {
    if (client === CLIENT) throw refusal(400);
    return OWNER;
  });
  const receipt = receiptOf(randomUUID());
  expect(await ownerOf(CLIENT, receipt, readerOf())).toBeNull();
  expect(await ownerOf(other, receipt, readerOf())).toBe(OWNER);
});

it('one that is being read for one client is read for another beside that', async () => {
  const other = randomUUID();
  const owners = new Map<string, string>([
    [CLIENT, OWNER],
    [other, randomUUID()],
  ]);
  const { ownerOf } = start(async (_party, client) => {
    await wait(10);
    return owners.get(client);
  });
  const receipt = receiptOf(randomUUID());
  const found = await Promise.all([CLIENT, other].map((client) => ownerOf(client, receipt, readerOf())));
  expect(found).toEqual([...owners.values()]);
});

it.each([
  [429, 'the service asks to come later'],
  [408, 'something on the way gave the request up'],
])('one to which %i was answered, as %s, is asked for again', async (status) => {
  let reads = 0;
  const { ownerOf, unattributed } = start(async () => {
    reads += 1;
    if (reads === 1) throw refusal(status);
    return OWNER;
  });
  expect(await ownerOf(CLIENT, receiptOf(randomUUID()), readerOf())).toBe(OWNER);
  expect(unattributed).toEqual([]);
});

it('one that has just come waits for its transaction beside an older one, which is asked for once', async () => {
  const asked: boolean[] = [];
  const { ownerOf, unattributed } = start(async (_party, _client, _id, isSettled) => {
    asked.push(isSettled);
    await wait(1);
    return isSettled || asked.length < 3 ? undefined : OWNER;
  });
  const id = randomUUID();
  const [fresh, old] = await Promise.all([
    ownerOf(CLIENT, receiptOf(id), readerOf()),
    ownerOf(CLIENT, receiptOf(id.toUpperCase(), new Date(0)), readerOf()),
  ]);
  expect([fresh, old]).toEqual([OWNER, null]);
  expect(asked.filter(Boolean)).toHaveLength(1);
  expect(unattributed).toEqual(['unknown']);
});

it('one that the reader may not ask for is asked of nobody, and no answer is given', async () => {
  const { ownerOf } = start(() => Promise.reject(new Error('nothing is read')));
  await expect(
    ownerOf(CLIENT, receiptOf(randomUUID()), { ...readerOf(), mayAsk: () => false }),
  ).rejects.toThrow(LogReadingError);
});

/** A service that shows a transaction from its n-th look on, and what asks it whose a receipt of that transaction is. */
async function startLate(appearsAt: number) {
  const id = randomUUID();
  const upstream = await startUpstream((_request, response) => {
    if (upstream.requests.length < appearsAt) json(response, {}, 404);
    else json(response, { id, sourceInstrument: { id: randomUUID(), ownerId: OWNER } });
  });
  const owners = createSourceOwners();
  const find: FindOwner = (_party, clientId, id, isSettled) =>
    owners.find(upstream.restOf({ clientId, deadline: Date.now() + 600_000 }), id, isSettled);
  const ownerOf = createReceiptOwner({ known: owners.known, find }, 600_000, () => {});
  return {
    upstream,
    /** Asks whose a receipt is that comes now, or came long ago. */
    ask: (receivedAt?: Date, mayAsk = () => true) =>
      ownerOf(CLIENT, receiptOf(id, receivedAt), { ...readerOf(), mayAsk }),
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  };
}

it('one that comes once its transaction is there is told, though an older one of it came too soon', async () => {
  await using service = await startLate(2);
  expect(await service.ask(new Date(0))).toBeNull();
  await expect(service.ask(new Date(), () => false)).rejects.toThrow(LogReadingError);
  expect(await service.ask(new Date())).toBe(OWNER);
  expect(service.upstream.requests).toHaveLength(2);
});

it('one that has just come is looked for five times in all, though an older one found nothing', async () => {
  await using service = await startLate(6);
  expect(await service.ask(new Date(0))).toBeNull();
  expect(await service.ask(new Date())).toBe(OWNER);
  expect(service.upstream.requests).toHaveLength(6);
});
