import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonReader } from '../../../src/upstream/call/json-reader.ts';

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Reads a text that comes in chunks cut at these places. */
function read(bytes: Buffer, cuts: readonly number[], longBytes: number): unknown {
  const reader = new JsonReader(longBytes);
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let from = 0;
  for (const to of places) {
    reader.push(bytes.subarray(from, to));
    from = to;
  }
  return reader.end().body;
}

const cuts = fc.array(fc.nat({ max: 10_000 }), { maxLength: 12 });
const envelope = fc.record({
  data: fc.array(
    fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string())),
  ),
  currentPage: fc.nat(),
  'weird [{,"\\ ñ🙂': fc.array(fc.string({ unit: 'grapheme' })),
  nested: fc.jsonValue({ maxDepth: 3 }),
});

describe('JSON that is parsed while it comes', () => {
  it('is what JSON.parse makes of it, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.oneof(envelope, fc.jsonValue()),
        cuts,
        fc.constantFrom(0, 1, 4),
        (value, places, space) => {
          const text = JSON.stringify(value, null, space);
          expect(read(Buffer.from(text), places, 1)).toEqual(JSON.parse(text));
        },
      ),
      { numRuns: 3_000, seed: 1 },
    );
  });

  it('is undefined where JSON.parse refuses it, and what it makes of it where it does not', () => {
    const damage = fc.record({
      at: fc.nat({ max: 500 }),
      by: fc.constantFrom(',', ']', '[', '{', '}', '"', '\\', '', ':', 'x'),
    });
    fc.assert(
      fc.property(envelope, damage, cuts, (value, { at, by }, places) => {
        const text = JSON.stringify(value);
        const place = at % text.length;
        const damaged = Buffer.from(text.slice(0, place) + by + text.slice(place + 1));
        expect(read(damaged, places, 1)).toEqual(parse(damaged.toString()));
      }),
      { numRuns: 3_000, seed: 2 },
    );
  });

  it.each([
    ['{"data":[1,]}'],
    ['{"data":[,1]}'],
    ['{"data":[1,,2]}'],
    ['{"data":[],}'],
    ['{"data":[1]'],
    ['{"data":[1]}]'],
    ['{"data":[1} '],
  ])('refuses %s at every cut', (text) => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      expect(read(Buffer.from(text), [cut], 1)).toBeUndefined();
    }
  });

  it('skips a byte order mark, and keeps members of any name', () => {
    const text = '\uFEFF{"__proto__":[1,2],"data":[{"id":"a"}]}';
    const body = read(Buffer.from(text), [3, 5, 20], 1);
    expect(body).toEqual(JSON.parse(text.slice(1)));
    expect(Object.hasOwn(body as object, '__proto__')).toBe(true);
  });
});
