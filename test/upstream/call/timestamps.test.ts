import { describe, expect, it } from 'vitest';
import { toRfc3339 } from '../../../src/upstream/call/timestamps.ts';

describe('upstream timestamps', () => {
  it.each([
    ['2026-05-01 10:20:30.123456-06:00', '2026-05-01T10:20:30.123456-06:00'],
    ['2026-05-01 10:20:30.123456', '2026-05-01T10:20:30.123456-06:00'],
    ['2026-05-01T10:20:30.5Z', '2026-05-01T10:20:30.5Z'],
    ['2026-05-01T10:20:30', '2026-05-01T10:20:30-06:00'],
    ['2026-05-01 10:20:30', '2026-05-01T10:20:30-06:00'],
    ['2026-05-01T10:20:30+0000', '2026-05-01T10:20:30+00:00'],
    ['2026-05-01 10:20:30.123456-06', '2026-05-01T10:20:30.123456-06:00'],
  ])('%s is %s', (text, written) => {
    expect(toRfc3339(text, '-06:00')).toBe(written);
  });

  it.each([null, undefined, '', 'None'])('%s is absent', (value) => {
    expect(toRfc3339(value, '-06:00')).toBeNull();
  });

  it.each(['yesterday', '2026-05-01', '2026-13-01 10:20:30', '2026-05-01 25:00:00', '1714550400'])(
    '%s is no timestamp',
    (text) => {
      expect(toRfc3339(text, '-06:00')).toBeUndefined();
    },
  );
});
