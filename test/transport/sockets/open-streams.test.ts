import { describe, expect, it } from 'vitest';
import type { KeptBytes } from '../../../src/operation/streams.ts';
import { createOpenStreams, type StreamSeat } from '../../../src/transport/sockets/open-streams.ts';

const LIMITS = { total: 6, perAddress: 3, perCaller: 2, perClient: 3 };
const MEBIBYTE = 1024 * 1024;

const ownerOf = (caller: string, clientId = 'c') => ({ caller, clientId });

function start(limits = LIMITS) {
  const streams = createOpenStreams(limits);
  const enter = (address?: string): StreamSeat => {
    const seat = streams.enter(address, 'websocket');
    if (typeof seat === 'string') throw new Error(seat);
    return seat;
  };
  return { streams, enter };
}

describe('seats of streams', () => {
  it('are bounded in all and for each address, and given back once', () => {
    const { streams, enter } = start();
    const seats = [enter('a'), enter('a'), enter('a')];
    expect(streams.enter('a', 'websocket')).toBe('address-full');
    seats.push(enter(undefined), enter(undefined), enter('b'));
    expect(streams.enter('b', 'websocket')).toBe('full');
    seats[0]?.leave();
    seats[0]?.leave();
    enter('a');
    expect([streams.enter('a', 'websocket'), streams.enter('c', 'websocket')]).toEqual(['full', 'full']);
    for (const seat of seats) seat.leave();
    for (let count = 0; count < 2; count += 1) enter('a');
    expect(streams.enter('a', 'websocket')).toBe('address-full');
  });

  it('count by what they came over, and together', () => {
    const { streams, enter } = start();
    const left = enter('a');
    enter('b');
    expect(streams.enter('c', 'sse')).not.toBeTypeOf('string');
    expect(streams.taken).toEqual({ websocket: 2, sse: 1 });
    left.leave();
    left.leave();
    expect(streams.taken).toEqual({ websocket: 1, sse: 1 });
    for (let count = 2; count < LIMITS.total; count += 1) streams.enter(undefined, 'sse');
    expect([streams.enter('d', 'sse'), streams.enter('d', 'websocket')]).toEqual(['full', 'full']);
  });

  it('are bounded for each caller and each client, and a refusal takes nothing', () => {
    const { enter } = start();
    const claimed = ['one', 'one', 'two'].map((caller) => {
      const seat = enter();
      expect(seat.claim(ownerOf(caller))).toBe('claimed');
      return seat;
    });
    expect(enter().claim(ownerOf('one'))).toBe('caller-full');
    for (let round = 0; round < 3; round += 1) {
      const refused = enter();
      expect(refused.claim(ownerOf('three'))).toBe('client-full');
      refused.leave();
    }
    claimed[0]?.leave();
    expect(enter().claim(ownerOf('three'))).toBe('claimed');
    claimed[1]?.leave();
    claimed[2]?.leave();
    // What was refused at the client was not counted of the caller either.
    expect(enter().claim(ownerOf('three'))).toBe('claimed');
  });

  it('are claimed once, and not after they were left', () => {
    const { enter } = start();
    const seat = enter();
    expect([seat.claim(ownerOf('one')), seat.claim(ownerOf('one'))]).toEqual(['claimed', 'caller-full']);
    seat.leave();
    expect([seat.claim(ownerOf('one')), seat.keep({}, { bytes: 1, document: {}, documentBytes: 1 })]).toEqual(
      ['caller-full', 'kept-full'],
    );
    const [first, second] = [enter(), enter()];
    expect([first.claim(ownerOf('one')), second.claim(ownerOf('one'))]).toEqual(['claimed', 'claimed']);
  });
});

it('a refusal of an identified caller is told, with its client', () => {
  const told: string[] = [];
  const streams = createOpenStreams(LIMITS, (limit, group) => told.push(`${limit} of ${group}`));
  const enter = (): StreamSeat => streams.enter(undefined, 'websocket') as StreamSeat;
  const seats = ['one', 'one', 'one', 'two', 'three'].map((caller) => {
    const seat = enter();
    seat.claim(ownerOf(caller));
    return seat;
  });
  seats[0]?.keep({}, { bytes: 17 * MEBIBYTE, document: {}, documentBytes: 1 });
  expect(told).toEqual([
    'streams_of_caller of client c',
    'streams_of_client of client c',
    'kept_of_caller of client c',
  ]);
});

describe('what operations keep', () => {
  const claimed = (enter: () => StreamSeat, caller = 'one') => {
    const seat = enter();
    seat.claim(ownerOf(caller));
    return seat;
  };
  const keptOf = (bytes: number, document: object = {}, documentBytes = 0): KeptBytes => ({
    bytes,
    document,
    documentBytes,
  });

  it('is bounded for each caller, over all of its sockets', () => {
    const { enter } = start();
    const [first, second, other] = [claimed(enter), claimed(enter), claimed(enter, 'two')];
    const operation = {};
    expect(first.keep(operation, keptOf(10 * MEBIBYTE))).toBeUndefined();
    expect(second.keep({}, keptOf(10 * MEBIBYTE))).toBe('kept-full');
    expect(other.keep({}, keptOf(10 * MEBIBYTE))).toBeUndefined();
    first.letGo(operation);
    first.letGo(operation);
    expect(second.keep({}, keptOf(16 * MEBIBYTE))).toBeUndefined();
    expect(first.keep({}, keptOf(1))).toBe('kept-full');
  });

  it('is let go of with its socket', () => {
    const { enter } = start();
    const first = claimed(enter);
    for (let count = 0; count < 4; count += 1) expect(first.keep({}, keptOf(4 * MEBIBYTE))).toBeUndefined();
    first.leave();
    expect(claimed(enter).keep({}, keptOf(16 * MEBIBYTE))).toBeUndefined();
  });

  it('counts a document once, as long as one operation of the caller has it', () => {
    const { enter } = start();
    const [first, second] = [claimed(enter), claimed(enter)];
    const document = {};
    const operations = [{}, {}, {}];
    const kept = keptOf(1, document, 10 * MEBIBYTE);
    for (const [at, one] of operations.entries())
      expect((at === 1 ? second : first).keep(one, kept)).toBeUndefined();
    const other = {};
    expect(second.keep(other, keptOf(0, {}, 10 * MEBIBYTE))).toBe('kept-full');
    for (const one of operations.slice(0, 1)) first.letGo(one);
    second.leave();
    expect(first.keep(other, keptOf(0, {}, 10 * MEBIBYTE))).toBe('kept-full');
    first.letGo(operations[2] ?? {});
    expect(first.keep(other, keptOf(0, {}, 10 * MEBIBYTE))).toBeUndefined();
  });

  it('is bounded for each group, so that others have room, and let go of', () => {
    const { enter } = start({ total: 20, perAddress: 20, perCaller: 20, perClient: 20 });
    const seatOf = (caller: string, group: string) => {
      const seat = enter();
      seat.claim({ ...ownerOf(caller), group });
      return seat;
    };
    const busy = Array.from({ length: 8 }, (_, index) => seatOf(`caller ${index}`, 'busy'));
    const document = {};
    const kept = (seat: StreamSeat) => seat.keep({}, keptOf(15 * MEBIBYTE, document, MEBIBYTE));
    expect(busy.map(kept)).toEqual([...Array(6).fill(undefined), 'group-kept-full', 'group-kept-full']);
    expect(kept(seatOf('one of another', 'quiet'))).toBeUndefined();
    busy[0]?.leave();
    expect(busy.slice(6).map(kept)).toEqual([undefined, 'group-kept-full']);
  });

  it('is bounded in all', () => {
    const { enter } = start({ total: 20, perAddress: 20, perCaller: 20, perClient: 20 });
    const seats = Array.from({ length: 9 }, (_, index) => claimed(enter, `caller ${index}`));
    expect(seats.map((seat) => seat.keep({}, keptOf(15 * MEBIBYTE)))).toEqual([
      ...Array(8).fill(undefined),
      'all-kept-full',
    ]);
    seats[0]?.leave();
    expect(seats[8]?.keep({}, keptOf(15 * MEBIBYTE))).toBeUndefined();
  });

  it('counts a document that callers have in common once in all, as long as one of them has it', () => {
    const { enter } = start({ total: 40, perAddress: 40, perCaller: 40, perClient: 40 });
    const document = {};
    const seats = Array.from({ length: 30 }, (_, index) => claimed(enter, `caller ${index}`));
    for (const seat of seats) expect(seat.keep({}, keptOf(1, document, 15 * MEBIBYTE))).toBeUndefined();
    const others = Array.from({ length: 8 }, (_, index) => claimed(enter, `other ${index}`));
    const kept = () => others.map((seat) => seat.keep({}, keptOf(0, {}, 15 * MEBIBYTE)));
    expect(kept()).toEqual([...Array(7).fill(undefined), 'all-kept-full']);
    for (const seat of seats.slice(1)) seat.leave();
    expect(others[7]?.keep({}, keptOf(0, {}, 15 * MEBIBYTE))).toBe('all-kept-full');
    seats[0]?.leave();
    expect(others[7]?.keep({}, keptOf(0, {}, 15 * MEBIBYTE))).toBeUndefined();
  });
});
