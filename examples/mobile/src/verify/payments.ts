import { type Intent, type Outcome, type Source, type Standing, standingOf } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { explainRefusal } from '../ui/problem.ts';
import {
  hasEnded,
  inputOf,
  nameOf,
  type Refusal,
  type Result,
  useIntents,
  type Verification,
} from './intents.ts';

/**
 * The reference of a person's cents: where an answer is lost, it tells them from another person's to the same account. It is
 * the same for each press, because a press with another one would be another payment.
 */
function referenceOf(owner: string): string {
  let sum = 0;
  for (const letter of owner) sum = (sum * 31 + letter.charCodeAt(0)) % 9_999_999;
  return String(1 + sum);
}

export interface OpenVerification {
  readonly key: string;
  readonly input: Verification;
  /** `done` if the cent was sent, and nobody has seen the end of its receipt. */
  readonly standing: Exclude<Standing, 'refused'>;
  /** Asks what became of it, and shows that; sends it where it was not. It sends no other one. */
  ask(): void;
  /**
   * Lets go of it: one that is unpaid, or once somebody has found out elsewhere what became of it. The next one is another payment.
   * Undefined as long as asking may still tell, or as the receipt has not been asked for.
   */
  readonly forget: (() => void) | undefined;
}

/** A verification that was refused before somebody saw it. It has moved nothing. */
export interface RefusedVerification {
  readonly key: string;
  readonly input: Verification;
  readonly reason: string;
  /** To be called once somebody has seen it. */
  seen(): void;
}

/** What somebody has seen who leaves a verification: its end, that it is told no more, or neither. */
export type Leaving = 'seen' | 'untold' | 'early';

export interface Payments {
  /** Verifications of which nobody has seen the end: the app was closed, or the network was gone. Undefined until they are read. */
  readonly open: readonly OpenVerification[] | undefined;
  readonly refused: readonly RefusedVerification[];
  readonly sending: boolean;
  readonly problem: string | undefined;
  /** The transaction of the verification that is on the screen. */
  readonly followed: string | undefined;
  /** Starts a verification, or asks what became of an equal one that is open. On success that one is followed. */
  send(input: Verification): Promise<void>;
  /** Leaves the one that is followed. It stays open unless its end was seen. */
  leave(how: Leaving): Promise<void>;
}

/**
 * The verifications of one person on this phone. One payment each, whatever happens to the network or the app.
 *
 * @param owner as the session names it: the keys of one are no keys of another
 * @param isLive true while the gateway is there: when it comes back, those without an answer are asked about again.
 * @param signal aborted as the session ends: nothing more is sent
 */
export function usePayments(source: Source, owner: string, isLive: boolean, signal: AbortSignal): Payments {
  const { t } = useSpeech();
  const [problem, setProblem] = useState<string>();
  const untold = useCallback(() => setProblem(t.unstorable), [t]);
  const intents = useIntents(source, owner, signal, untold);
  const { open, refusals, unclear, setUnclear, look, press, goOn } = intents;
  const { sending, shown, setShown, show } = useShown(intents.dropRefusal, setProblem);
  useGoingOn(source, isLive, intents, show);
  const letGo = (intent: Intent): void => {
    setProblem(undefined);
    void intents.letGo(intent);
  };
  return {
    open: open?.flatMap((intent) => {
      const { idempotencyKey: key } = intent;
      const standing = standingOf(intent);
      if (standing === undefined || standing === 'refused') return [];
      const isFree = standing === 'unpaid' || unclear.includes(key);
      return {
        key,
        input: inputOf(intent),
        standing,
        ask: () => void show(goOn(intent)),
        forget: isFree ? () => letGo(intent) : undefined,
      };
    }),
    refused: refusals.map((refusal) => ({
      key: refusal.intent.idempotencyKey,
      input: inputOf(refusal.intent),
      reason: told(refusal, t),
      seen: () => void intents.dropRefusal(refusal),
    })),
    sending,
    problem,
    send: (input) => show(press({ ...input, externalReference: referenceOf(owner) })),
    followed: shown?.result.transaction.id,
    async leave(how) {
      // If the phone cannot keep that it was seen, it is shown once more.
      if (how === 'seen') await shown?.acknowledge().catch(() => {});
      if (how === 'untold' && shown) setUnclear((before) => [...before, shown.intent.idempotencyKey]);
      await look();
      setShown(undefined);
    },
  };
}

type Intents = ReturnType<typeof useIntents>;
type Show = (asking: Promise<Outcome<Result> | undefined>) => Promise<void>;

/** What the person waits for: a verification that is followed, or why there is none. */
function useShown(dropRefusal: Intents['dropRefusal'], setProblem: (problem: string | undefined) => void) {
  const { t } = useSpeech();
  const [sending, setSending] = useState(false);
  const [shown, setShown] = useState<Done>();
  /** The one that `problem` tells of. */
  const [refusal, setRefusal] = useState<Refusal>();
  const show: Show = async (asking) => {
    setProblem(undefined);
    setSending(true);
    // Who presses again has seen why the last one was refused. An app that was closed before shows it at its next start.
    setRefusal(undefined);
    if (refusal !== undefined) await dropRefusal(refusal);
    const outcome = await asking;
    setSending(false);
    if (outcome?.status === 'refused') setRefusal(outcome);
    if (outcome?.status === 'done') setShown(outcome);
    else if (outcome !== undefined) setProblem(told(outcome, t));
  };
  return { sending, shown, setShown, show };
}

/** Goes on with what has no answer, at the start and whenever the gateway is there again: nothing else does. */
function useGoingOn(source: Source, isLive: boolean, intents: Intents, show: Show): void {
  const { asked, look, goOn, addRefusal } = intents;
  const goOnWith = async (intent: Intent): Promise<void> => {
    if (standingOf(intent) === 'late' && !(await hasEnded(source, intent))) return;
    if (asked.has(nameOf(inputOf(intent)))) return;
    const outcome = await goOn(intent);
    // Of all others the list tells.
    if (outcome?.status === 'refused') addRefusal(outcome);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked for once, at the start.
  useEffect(() => {
    void look().then(async (found) => {
      const [only, ...more] = found.filter((intent) => standingOf(intent) !== 'unpaid');
      if (only === undefined || more.length > 0 || standingOf(only) === 'late') return;
      await show(goOn(only));
    });
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the gateway is there again.
  useEffect(() => {
    if (!isLive) return;
    void look().then((found) => {
      for (const intent of found) {
        const isOpen = ['unknown', 'late'].includes(standingOf(intent) ?? '');
        if (isOpen && !asked.has(nameOf(inputOf(intent)))) void goOnWith(intent);
      }
    });
  }, [isLive]);
}

type Done = Extract<Outcome<Result>, { status: 'done' }>;

function told(outcome: Exclude<Outcome<Result>, { status: 'done' }>, t: Messages): string {
  if (outcome.status === 'refused') return explainRefusal(outcome.code, outcome.message, t);
  const { title, safe, unsafe, behind } = t.unknown;
  if (outcome.code !== undefined)
    return `${title}. ${behind(explainRefusal(outcome.code, outcome.message, t))}`;
  return `${title}. ${outcome.safeToRetry ? safe : unsafe}`;
}
