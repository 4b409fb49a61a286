import { expect, it } from 'vitest';
import type { Verdict } from '../../src/ingress/decider.ts';
import { createJudge } from '../../src/ingress/judge.ts';
import { recordingLogger } from '../helpers/events.ts';

const CREDIT = {
  transactionId: 'c0ffee00-0000-4000-8000-00000000000a',
  identity: 'message contents',
  text: '{}',
};
const [ONE, OTHER] = ['one-client', 'other-client'];
const REJECTED: Verdict = { decision: 'REJECTED', refundReason: 'no' };
const ACCEPTED: Verdict = { decision: 'ACCEPTED' };

/** A judge whose decider gives these verdicts, one after the other. */
function judgeWith(...verdicts: readonly Verdict[]) {
  const left = [...verdicts];
  const decider = { ask: async () => left.shift(), close: async () => undefined };
  const judge = createJudge(decider, async () => undefined, recordingLogger());
  const ask = (credit: Partial<typeof CREDIT> & { clientId: string }, isHeard: boolean) =>
    judge.ask({ ...CREDIT, ...credit }, () => isHeard);
  return { ask, left };
}

it('a refusal that nobody heard is that of its client alone: of another the same message is decided on anew', async () => {
  const { ask, left } = judgeWith(REJECTED, ACCEPTED);
  expect(await ask({ clientId: ONE }, false)).toBeUndefined();
  expect(await ask({ clientId: OTHER }, true)).toEqual(ACCEPTED);
  expect(left).toEqual([]);
  expect(await ask({ clientId: ONE }, true)).toEqual(REJECTED);
});

it('a refusal that nobody heard counts for the same contents alone, and once', async () => {
  const { ask, left } = judgeWith(REJECTED, ACCEPTED, ACCEPTED);
  expect(await ask({ clientId: ONE }, false)).toBeUndefined();
  expect(await ask({ clientId: ONE, identity: 'message others' }, true)).toEqual(ACCEPTED);
  expect(await ask({ clientId: ONE }, true)).toEqual(REJECTED);
  expect(await ask({ clientId: ONE }, true)).toEqual(ACCEPTED);
  expect(left).toEqual([]);
});
