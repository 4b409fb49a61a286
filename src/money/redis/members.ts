import type { PaymentPosition, PaymentSearch } from '../record.ts';

/** Digits of a time in ms since the epoch, until the year 2286. */
export const TIME_DIGITS = 13;
const LATEST = 10 ** TIME_DIGITS - 1;

/** Returns where the range of a search begins and ends in a set, in the order of reading. */
export function boundsOf({ from, to, beyond, isBack }: PaymentSearch): [string, string] {
  const position = beyond === undefined ? undefined : `${written(beyond.createdAt)}:${beyond.hash}`;
  const oldest = from === undefined ? '-' : `[${written(from)}`;
  const newest = to === undefined ? '+' : `(${written(to)}`;
  if (isBack) return [position === undefined || isLess(position, oldest) ? oldest : `(${position}`, newest];
  return [position === undefined || isLess(newest, position) ? newest : `(${position}`, oldest];
}

const isLess = (one: string, other: string): boolean =>
  one.replace(/^[[(]/, '').replace('+', '~') < other.replace(/^[[(]/, '').replace('+', '~');

const written = (time: number): string =>
  String(Math.min(Math.max(0, Math.ceil(time)), LATEST)).padStart(TIME_DIGITS, '0');

/** Returns the place of a member. */
export const positionIn = (member: string): PaymentPosition => ({
  createdAt: Number(member.slice(0, TIME_DIGITS)),
  hash: member.slice(TIME_DIGITS + 1),
});
