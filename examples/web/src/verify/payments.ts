import { finish, type Intent, type Outcome, type Standing, standingOf, unsettled } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';
import type { Graph } from '../graph/graph.ts';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { explainRefusal } from '../ui/problem.ts';
import { verification } from '../ui/route.ts';
import { START_VERIFICATION } from './documents.ts';
import {
  hasEnded,
  inputOf,
  nameOf,
  type Refusal,
  type Result,
  transactionOf,
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

export interface Payments {
  /** Verifications of which nobody has seen the end: the answer was lost, or the page was closed before its receipt came. */
  readonly open: readonly OpenVerification[];
  readonly refused: readonly RefusedVerification[];
  readonly sending: boolean;
  readonly problem: string | undefined;
  /** Reads anew what is open: another tab may have changed that. */
  look(): Promise<unknown>;
  /** Starts a verification, or asks what became of an equal one that is open. On success the address moves on to it. */
  send(input: Verification): Promise<void>;
  /** To be called once somebody has seen all that can be shown of a transaction: the same input is another payment then. */
  seen(transactionId: string): Promise<void>;
  /** To be called where no end of a transaction can be shown: it stays open, and somebody may find out elsewhere. */
  untold(transactionId: string): Promise<void>;
}

/**
 * The verifications of one person in this browser. One payment each, whatever happens to the network or the page.
 *
 * @param graph nothing more is sent once its `signal` is aborted
 * @param owner as the session names it: the keys of one are no keys of another
 * @param isLive true while the gateway is there: when it comes back, those without an answer are asked about again.
 */
export function usePayments(graph: Graph, owner: string, isLive: boolean): Payments {
  const { t } = useSpeech();
  const [problem, setProblem] = useState<string>();
  const untold = useCallback(() => setProblem(t.unstorable), [t]);
  const intents = useIntents(graph, owner, untold);
  const { open, refusals, unclear, press, goOn } = intents;
  const { sending, show } = useShown(graph.signal, intents.dropRefusal, setProblem);
  useGoingOn(graph, isLive, intents);
  const letGo = (intent: Intent): void => {
    setProblem(undefined);
    void intents.letGo(intent);
  };
  return {
    open: open.flatMap((intent) => {
      const standing = standingOf(intent);
      if (standing === undefined || standing === 'refused') return [];
      const isFree = standing === 'unpaid' || unclear.includes(intent.idempotencyKey);
      return {
        key: intent.idempotencyKey,
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
    look: intents.look,
    send: (input) => show(press({ ...input, externalReference: referenceOf(owner) })),
    ...useEnds(graph, intents),
  };
}

type Intents = ReturnType<typeof useIntents>;

/** What the person waits for: the address of a verification, or why there is none. */
function useShown(
  signal: AbortSignal,
  dropRefusal: Intents['dropRefusal'],
  setProblem: (problem: string | undefined) => void,
) {
  const { t } = useSpeech();
  const [sending, setSending] = useState(false);
  /** The one that `problem` tells of. */
  const [refusal, setRefusal] = useState<Refusal>();
  const show = async (asking: Promise<Outcome<Result> | undefined>): Promise<void> => {
    setProblem(undefined);
    setSending(true);
    // Who presses again has seen why the last one was refused. A page that was closed before shows it at its next start.
    setRefusal(undefined);
    if (refusal !== undefined) await dropRefusal(refusal);
    const outcome = await asking;
    // The address is the next person's by now. The store has what this one is shown at the next sign-in.
    if (signal.aborted) return;
    setSending(false);
    if (outcome?.status === 'refused') setRefusal(outcome);
    // The address shows it from now on, also after a reload.
    if (outcome?.status === 'done') location.hash = verification(outcome.result.transaction.id);
    else if (outcome !== undefined) setProblem(told(outcome, t));
  };
  return { sending, show };
}

/** Goes on with what has no answer, whenever the gateway is there: nothing else does. */
function useGoingOn({ source }: Graph, isLive: boolean, intents: Intents): void {
  const { asked, look, goOn, addRefusal } = intents;
  const goOnWith = async (intent: Intent): Promise<void> => {
    if (standingOf(intent) === 'late' && !(await hasEnded(source, intent))) return;
    if (asked.has(nameOf(inputOf(intent)))) return;
    const outcome = await goOn(intent);
    // Of all others the list tells.
    if (outcome?.status === 'refused') addRefusal(outcome);
  };
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

/** What the screen of a transaction tells of its end. */
function useEnds({ source }: Graph, { store, look, setUnclear }: Intents): Pick<Payments, 'seen' | 'untold'> {
  const sentAs = useCallback(
    async (transactionId: string): Promise<readonly Intent[]> =>
      (await unsettled(store)).filter((intent) => transactionOf(intent) === transactionId),
    [store],
  );
  const seen = useCallback(
    async (transactionId: string): Promise<void> => {
      for (const intent of await sentAs(transactionId)) {
        // It is done, so this sends nothing. A forgotten one would be unknown in a tab that still asks about it.
        const outcome = await finish(source, START_VERIFICATION, intent, { store });
        await outcome.acknowledge();
      }
      await look();
    },
    [source, store, look, sentAs],
  );
  const untold = useCallback(
    async (transactionId: string): Promise<void> => {
      const keys = (await sentAs(transactionId)).map(({ idempotencyKey }) => idempotencyKey);
      setUnclear((before) => [...before, ...keys]);
    },
    [sentAs, setUnclear],
  );
  return { seen, untold };
}

function told(outcome: Exclude<Outcome<Result>, { status: 'done' }>, t: Messages): string {
  if (outcome.status === 'refused') return explainRefusal(outcome.code, outcome.message, t);
  const { title, safe, unsafe, behind } = t.unknown;
  if (outcome.code !== undefined)
    return `${title}. ${behind(explainRefusal(outcome.code, outcome.message, t))}`;
  return `${title}. ${outcome.safeToRetry ? safe : unsafe}`;
}
