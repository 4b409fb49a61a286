import type { Answer } from './load.ts';

const OPENING = '{"data":';

/** The bytes of `data` in the answer that all others are compared with. */
export function dataOf({ status, text }: Answer): string {
  const body = text.trimEnd();
  if (status !== 200 || !body.startsWith(OPENING) || !body.endsWith('}')) {
    throw new Error(`was answered with ${status} ${text.slice(0, 300)}`);
  }
  return body.slice(OPENING.length, -1);
}

/**
 * Fails on any answer whose `data` has other bytes, or that carries errors.
 *
 * @param who names the server in the message.
 */
export function expectData(who: string, expected: string): (answer: Answer) => void {
  return ({ status, text }) => {
    const end = OPENING.length + expected.length;
    const rest = text.slice(end).trimEnd();
    const same = status === 200 && text.startsWith(OPENING) && text.slice(OPENING.length, end) === expected;
    if (!same || (rest !== '}' && !rest.startsWith(',"extensions":'))) {
      throw new Error(
        `${who} answers other bytes of data than the baseline: ${status} ${differing(text.slice(OPENING.length), expected)}`,
      );
    }
  };
}

/**
 * Fails on any answer that does not hold a text.
 *
 * @param who names the server in the message.
 */
export function expectText(who: string, expected: string): (answer: Answer) => void {
  return ({ status, text }) => {
    if (status === 200 && text.includes(expected)) return;
    throw new Error(`${who} answers without ${expected}: ${status} ${text.slice(0, 300)}`);
  };
}

function differing(text: string, expected: string): string {
  let at = 0;
  while (at < text.length && text[at] === expected[at]) at += 1;
  const from = Math.max(0, at - 40);
  return `…${text.slice(from, at + 80)}… where …${expected.slice(from, at + 80)}… is expected`;
}
