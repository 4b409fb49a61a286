import { language } from '../words.ts';

export const milliseconds = (value: number): string =>
  value >= 10_000
    ? `${(value / 1000).toFixed(1)} s`
    : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

export const bytes = (value: number): string =>
  value < 1_000 ? `${value} B` : `${(value / 1000).toFixed(1)} kB`;

const CLOCK = new Intl.DateTimeFormat(language, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});

export const timeOf = (date: Date): string =>
  `${CLOCK.format(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
