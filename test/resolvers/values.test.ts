import { describe, expect, it } from 'vitest';
import { openEnum, undocumentedValues } from '../../src/resolvers/open-enum.ts';
import { jsonReference } from '../../src/resolvers/transaction.ts';
import { optional, timestamp } from '../../src/resolvers/values.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import { collectingLogger } from '../helpers/gateway.ts';

describe('a timestamp', () => {
  it.each([
    ['2026-11-20 09:30:00.123456-06:00', '2026-11-20T09:30:00.123456-06:00'],
    ['2026-11-20 09:30:00.123456', '2026-11-20T09:30:00.123456-06:00'],
    ['2026-11-20T09:30:00.123-06:00', '2026-11-20T09:30:00.123-06:00'],
    ['2026-11-20T15:30:00Z', '2026-11-20T15:30:00Z'],
    ['2026-11-20T09:30:00', '2026-11-20T09:30:00-06:00'],
    ['2026-11-20 09:30:00', '2026-11-20T09:30:00-06:00'],
  ])('%s becomes %s', (came, goes) => {
    expect(timestamp(came, 'createdAt', '-06:00')).toBe(goes);
  });

  it.each([null, undefined, '', 'None'])('that is %j is null', (came) => {
    expect(timestamp(came, 'deletedAt', '-06:00')).toBeNull();
  });

  it('that is none spoils its own field and says which', () => {
    expect(() => timestamp('yesterday', 'createdAt', '-06:00')).toThrow(UpstreamError);
    expect(() => timestamp('yesterday', 'createdAt', '-06:00')).toThrow(/"createdAt"/);
  });
});

describe('a text that may be absent', () => {
  it.each([null, undefined, '', 'None'])('is null when it came as %j', (came) => {
    expect(optional('alias')({ alias: came })).toBeNull();
  });

  it('is itself when it came', () => {
    expect(optional('alias')({ alias: 'Nómina' })).toBe('Nómina');
  });
});

describe('a reference of any structure', () => {
  const shown = (text: string) => jsonReference({ jsonReference: JSON.parse(text) } as never);

  it.each(['{"a":[1,9007199254740991]}', '[]', 'true', '7'])('that is %s is shown as it came', (text) => {
    expect(shown(text)).toBe(text);
  });

  it.each(['null', '"None"', '""'])('that is %s is null', (text) => {
    expect(shown(text)).toBeNull();
  });

  it.each(['{"a":{"reference":12345678901234567890}}', '12345678901234567890', '[1e400]'])(
    'that is %s is not shown with other digits than it has',
    (text) => {
      expect(() => shown(text)).toThrow('sent a "jsonReference" that holds a number of more digits');
    },
  );
});

describe('an open list of values', () => {
  it('shows a documented value as itself and says nothing of it', () => {
    const lines: string[] = [];
    const read = openEnum('Documented', ['ACTIVE']);
    expect(read('ACTIVE', collectingLogger(lines))).toBe('ACTIVE');
    expect(lines).toEqual([]);
  });

  it('shows any other value as OTHER, counts it each time and logs it once', () => {
    const lines: string[] = [];
    const logger = collectingLogger(lines);
    const read = openEnum('Counted', ['ACTIVE']);
    expect([read('SLEEPING', logger), read('SLEEPING', logger), read('DREAMING', logger)]).toEqual([
      'OTHER',
      'OTHER',
      'OTHER',
    ]);
    expect(undocumentedValues().get('Counted')).toBe(3);
    expect(lines.map((line) => JSON.parse(line).value)).toEqual(['SLEEPING', 'DREAMING']);
  });

  it('shows an absent value as OTHER in silence', () => {
    const lines: string[] = [];
    expect(openEnum('Absent', ['ACTIVE'])(null, collectingLogger(lines))).toBe('OTHER');
    expect(lines).toEqual([]);
  });

  it('logs a bounded number of values, however many come, and counts all', () => {
    const lines: string[] = [];
    const logger = collectingLogger(lines);
    const read = openEnum('Flood', ['ACTIVE']);
    for (let index = 0; index < 5_000; index += 1) read(`VALUE_${index}`, logger);
    expect(undocumentedValues().get('Flood')).toBe(5_000);
    expect(lines.length).toBeLessThanOrEqual(1_000);
  });
});
