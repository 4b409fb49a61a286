import {
  finish,
  forget,
  forgetSettled,
  type Intent,
  intentStore,
  type Outcome,
  pay,
  type Source,
  unsettled,
} from '@pasarela/client';
import { useCallback, useEffect, useMemo, useState } from 'react';
import type { StartVerificationMutation } from '../gql/graphql.ts';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { explainRefusal } from '../ui/problem.ts';
import { verification } from '../ui/route.ts';
import { keysWith, storage } from '../ui/storage.ts';
import { START_VERIFICATION } from './documents.ts';

export interface Verification {
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

interface Order extends Verification {
  readonly externalReference: string;
}

/**
 * The reference of a person's cents: where an answer is lost, it tells them from another person's to the same account. It is
 * the same for each press, because a press with another one would be another payment.
 */
function referenceOf(owner: string): string {
  let sum = 0;
  for (const letter of owner) sum = (sum * 31 + letter.charCodeAt(0)) % 9_999_999;
  return String(1 + sum);
}

const KEPT = 'pasarela.intents.';

/** Of one person, for all tabs of this browser: ids and keys, no names. */
const storeOf = (owner: string) => intentStore(storage, `${KEPT}${owner}`);

/** Forgets the payments of all persons whose end was seen. Each other one keeps its key, so that it is not paid again. */
export async function forgetPayments(): Promise<void> {
  for (const key of keysWith(KEPT)) await forgetSettled(intentStore(storage, key));
}

export interface OpenVerification {
  readonly key: string;
  readonly input: Verification;
  /** True if the cent was sent, and nobody has seen the end of its receipt. */
  readonly isSent: boolean;
  /** Asks what became of it, and shows that. It sends no other one. */
  ask(): void;
  /**
   * Lets go of it, once somebody has found out elsewhere what became of it: the next one is another payment. Undefined as
   * long as asking may still tell, or as the receipt has not been asked for.
   */
  readonly forget: (() => void) | undefined;
}

export interface Payments {
  /** Verifications of which nobody has seen the end: the answer was lost, or the page was closed before its receipt came. */
  readonly open: readonly OpenVerification[];
  readonly sending: boolean;
  readonly problem: string | undefined;
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
 * @param owner as the session names it: the keys of one are no keys of another
 * @param isLive true while the gateway is there: when it comes back, those without an answer are asked about again.
 */
export function usePayments(source: Source, owner: string, isLive: boolean): Payments {
  const { t } = useSpeech();
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();
  const untold = useCallback(() => setProblem(t.unstorable), [t]);
  const { open, unclear, setUnclear, asked, look, press, goOn, store } = useIntents(source, owner, untold);

  const show = async (asking: Promise<Outcome<Result> | undefined>): Promise<void> => {
    setProblem(undefined);
    setSending(true);
    const outcome = await asking;
    setSending(false);
    // The address shows it from now on, also after a reload.
    if (outcome?.status === 'done') location.hash = verification(outcome.result.transaction.id);
    else if (outcome !== undefined) setProblem(told(outcome, t));
  };
  /** Goes on with those without an answer: nothing else does. Those that were sent are in the list. */
  const goOnWithAll = (intents: readonly Intent[]): void => {
    for (const intent of intents.filter((each) => !isSent(each) && !asked.has(nameOf(inputOf(each))))) {
      void goOn(intent).then((outcome) => {
        // Of those that nobody knows more of than before, the list tells.
        if (outcome?.status === 'refused') setProblem(told(outcome, t));
      });
    }
  };
  useEffect(() => {
    void look();
  }, [look]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the gateway is there again.
  useEffect(() => {
    if (isLive) void look().then(goOnWithAll);
  }, [isLive]);
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
  const untoldOf = useCallback(
    async (transactionId: string): Promise<void> => {
      const keys = (await sentAs(transactionId)).map(({ idempotencyKey }) => idempotencyKey);
      setUnclear((before) => [...before, ...keys]);
    },
    [sentAs, setUnclear],
  );
  const letGo = async (key: string): Promise<void> => {
    setProblem(undefined);
    await forget(store, key).catch(untold);
    await look();
  };
  return {
    open: open.map((intent) => ({
      key: intent.idempotencyKey,
      input: inputOf(intent),
      isSent: isSent(intent),
      ask: () => void show(goOn(intent)),
      forget: unclear.includes(intent.idempotencyKey) ? () => void letGo(intent.idempotencyKey) : undefined,
    })),
    sending,
    problem,
    send: (input) => show(press({ ...input, externalReference: referenceOf(owner) })),
    seen,
    untold: untoldOf,
  };
}

/** What the store keeps of verifications of which nobody has seen the end. @param untold called if the store fails. */
function useIntents(source: Source, owner: string, untold: () => void) {
  const store = useMemo(() => storeOf(owner), [owner]);
  /** Those that are asked about. */
  const asked = useMemo(() => new Set<string>(), []);
  const [open, setOpen] = useState<readonly Intent[]>([]);
  /** Keys of those of which asking tells nothing more. */
  const [unclear, setUnclear] = useState<readonly string[]>([]);

  const look = useCallback(async (): Promise<readonly Intent[]> => {
    const found = await unsettled(store).catch(untold);
    setOpen(found ?? []);
    return found ?? [];
  }, [store, untold]);
  /** @returns undefined if the browser could not keep the intent: nothing was sent without it. */
  const ask = async (
    input: Verification,
    begin: () => Promise<Outcome<Result>>,
  ): Promise<Outcome<Result> | undefined> => {
    asked.add(nameOf(input));
    const outcome = await begin().catch(() => undefined);
    asked.delete(nameOf(input));
    if (outcome === undefined) untold();
    else {
      const { idempotencyKey } = outcome.intent;
      const isOne = isUnclear(outcome);
      setUnclear((before) => [
        ...before.filter((key) => key !== idempotencyKey),
        ...(isOne ? [idempotencyKey] : []),
      ]);
    }
    await look();
    return outcome;
  };
  const press = (input: Order) => ask(input, () => pay(source, START_VERIFICATION, input, { store }));
  // Nobody has pressed: `pay` would send another one where another tab has ended this one meanwhile.
  const goOn = (intent: Intent) =>
    ask(inputOf(intent), () => finish(source, START_VERIFICATION, intent, { store }));
  return { store, open, unclear, setUnclear, asked, look, press, goOn };
}

type Result = NonNullable<StartVerificationMutation['createPennyValidation']>;

const nameOf = (input: Verification): string => JSON.stringify(input);

// No other payments are made here.
const inputOf = ({ input }: Intent) => input as unknown as Verification;

/** The transaction by which it ended, if it was sent. */
function transactionOf({ result }: Intent): string | undefined {
  const success = result as Partial<Extract<Result, { transaction: object }>> | undefined;
  return success?.transaction?.id;
}

const isSent = (intent: Intent): boolean => transactionOf(intent) !== undefined;

/**
 * True if asking tells nothing more for now. With a `code` the last call was refused, and one before it has no answer: the
 * gateway cannot call that the end.
 */
const isUnclear = (outcome: Outcome<Result>): boolean =>
  outcome.status === 'unknown' && (!outcome.safeToRetry || outcome.code !== undefined);

function told(outcome: Exclude<Outcome<Result>, { status: 'done' }>, t: Messages): string {
  if (outcome.status === 'refused') return explainRefusal(outcome.code, outcome.message, t);
  const { title, safe, unsafe, behind } = t.unknown;
  if (outcome.code !== undefined)
    return `${title}. ${behind(explainRefusal(outcome.code, outcome.message, t))}`;
  return `${title}. ${outcome.safeToRetry ? safe : unsafe}`;
}
