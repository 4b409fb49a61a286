import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeOffset,
  edgesOf,
  encodeOffset,
  listOf,
  pageInfoOf,
  pageOf,
  windowOf,
} from '../../src/resolvers/connection.ts';
import { BadInputError, PageCursorError } from '../../src/resolvers/errors.ts';

const LIST = 'a list';
/** A cursor of the list with something else in the place of its offset. */
const forged = (offset: string): string =>
  Buffer.from(Buffer.from(encodeOffset(LIST, 7), 'base64url').toString().replace(/7$/, offset)).toString(
    'base64url',
  );

const items = Array.from({ length: 120 }, (_, index) => index);

describe('a connection', () => {
  it.each([0, -1, 101, 10_000])('refuses first: %i and says what is allowed', (first) => {
    expect(() => windowOf(LIST, { first })).toThrow(BadInputError);
    expect(() => windowOf(LIST, { first })).toThrow(`"first" must be from 1 to 100; it is ${first}`);
  });

  it('returns 50 items where first is null', () => {
    expect(pageOf(LIST, items, { first: null }).nodes).toHaveLength(50);
  });

  it.each([
    '',
    'zzz',
    'b2Zmc2V0',
    encodeOffset(LIST, 3).slice(0, -1),
    `${encodeOffset(LIST, 3)}=`,
    ...['-1', '01', '9999999999', ''].map(forged),
    Buffer.from('o1:3').toString('base64url'),
    encodeOffset('another list', 3),
  ])('refuses the broken cursor %j', (after) => {
    expect(() => windowOf(LIST, { after })).toThrow(PageCursorError);
  });

  it('refuses a cursor of the whole list in the part that a narrowed caller sees, and of another’s part', () => {
    const rest = { subject: undefined, keyOwner: undefined, scopes: new Set<never>(), expiresAt: undefined };
    const seenBy = (customerId?: string) =>
      listOf({ caller: { clientId: 'client', customerId, ...rest } }, 'Client accounts');
    const cursorOf = (customerId?: string) => encodeOffset(seenBy(customerId), 3);
    for (const [seen, of] of [
      ['one', undefined],
      [undefined, 'one'],
      ['one', 'other'],
    ]) {
      expect(() => decodeOffset(seenBy(seen), 'after', cursorOf(of))).toThrow(PageCursorError);
    }
    expect(decodeOffset(seenBy('one'), 'after', cursorOf('ONE'))).toBe(3);
  });

  it('ends a page before the items that come after it, also near the beginning', () => {
    const page = pageOf(LIST, items, { last: 10, before: encodeOffset(LIST, 3) });
    expect(page.nodes).toEqual([0, 1, 2]);
  });

  it('makes cursors that decode to where they point', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1_000_000_000 }),
        (offset) => decodeOffset(LIST, 'after', encodeOffset(LIST, offset)) === offset,
      ),
    );
  });

  it('yields every item once, in order, however it is paged', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 120 }), fc.integer({ min: 1, max: 100 }), (length, first) => {
        const list = items.slice(0, length);
        const seen: number[] = [];
        let after: string | null = null;
        for (;;) {
          const page = pageOf(LIST, list, { first, after });
          const info = pageInfoOf(page);
          seen.push(...page.nodes);
          expect(page.totalCount).toBe(length);
          expect(info.hasPreviousPage).toBe(after !== null);
          expect(edgesOf(page).at(-1)?.cursor ?? null).toBe(info.endCursor);
          expect(edgesOf(page)[0]?.cursor ?? null).toBe(info.startCursor);
          if (!info.hasNextPage) break;
          after = info.endCursor;
        }
        expect(seen).toEqual(list);
      }),
    );
  });

  it('is empty past the end, and says that something precedes it', () => {
    const page = pageOf(LIST, items, { after: encodeOffset(LIST, 500) });
    expect(page.nodes).toEqual([]);
    expect(pageInfoOf(page)).toEqual({
      hasNextPage: false,
      hasPreviousPage: true,
      startCursor: null,
      endCursor: null,
    });
  });
});
