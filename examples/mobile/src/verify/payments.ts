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
import AsyncStorage from '@react-native-async-storage/async-storage';
import { randomUUID } from 'expo-crypto';
import { useCallback, useEffect, useMemo, useState } from 'react';
import type { StartVerificationMutation } from '../gql/graphql.ts';
import { useSpeech } from '../ui/i18n.tsx';
import type { Messages } from '../ui/messages.ts';
import { explainRefusal } from '../ui/problem.ts';
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

/** Of one person: ids and keys, no names. */
const storeOf = (owner: string) => intentStore(AsyncStorage, `${KEPT}${owner}`);

/** Forgets the payments of all persons whose end was seen. Each other one keeps its key, so that it is not paid again. */
export async function forgetPayments(): Promise<void> {
  const keys = await AsyncStorage.getAllKeys();
  for (const key of keys.filter((each) => each.startsWith(KEPT))) {
    await forgetSettled(intentStore(AsyncStorage, key));
  }
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

/** What somebody has seen who leaves a verification: its end, that it is told no more, or neither. */
export type Leaving = 'seen' | 'untold' | 'early';

export interface Payments {
  /** Verifications of which nobody has seen the end: the app was closed, or the network was gone. Undefined until they are read. */
  readonly open: readonly OpenVerification[] | undefined;
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
 */
export function usePayments(source: Source, owner: string, isLive: boolean): Payments {
  const { t } = useSpeech();
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [shown, setShown] = useState<Done>();
  const untold = useCallback(() => setProblem(t.unstorable), [t]);
  const { open, unclear, setUnclear, asked, look, press, goOn, store } = useIntents(source, owner, untold);

  const show = async (asking: Promise<Outcome<Result> | undefined>): Promise<void> => {
    setProblem(undefined);
    setSending(true);
    const outcome = await asking;
    setSending(false);
    if (outcome?.status === 'done') setShown(outcome);
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: looked for once, at the start.
  useEffect(() => {
    void look().then(async ([only, ...more]) => {
      if (only !== undefined && more.length === 0) await show(goOn(only));
    });
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the gateway is there again.
  useEffect(() => {
    if (isLive) void look().then(goOnWithAll);
  }, [isLive]);
  const letGo = async (key: string): Promise<void> => {
    setProblem(undefined);
    await forget(store, key).catch(untold);
    await look();
  };
  return {
    open: open?.map((intent) => ({
      key: intent.idempotencyKey,
      input: inputOf(intent),
      isSent: isSent(intent),
      ask: () => void show(goOn(intent)),
      forget: unclear.includes(intent.idempotencyKey) ? () => void letGo(intent.idempotencyKey) : undefined,
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

/** What the store keeps of verifications of which nobody has seen the end. @param untold called if the store fails. */
function useIntents(source: Source, owner: string, untold: () => void) {
  const store = useMemo(() => storeOf(owner), [owner]);
  /** Those that are asked about. */
  const asked = useMemo(() => new Set<string>(), []);
  const [open, setOpen] = useState<readonly Intent[]>();
  /** Keys of those of which asking tells nothing more. */
  const [unclear, setUnclear] = useState<readonly string[]>([]);

  const look = useCallback(async (): Promise<readonly Intent[]> => {
    const found = await unsettled(store).catch(untold);
    setOpen(found ?? []);
    return found ?? [];
  }, [store, untold]);
  /** @returns undefined if the phone could not keep the intent: nothing was sent without it. */
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
  const press = (input: Order) =>
    ask(input, () => pay(source, START_VERIFICATION, input, { store, newKey: randomUUID }));
  // Nobody has pressed: `pay` would send another one where it has ended meanwhile.
  const goOn = (intent: Intent) =>
    ask(inputOf(intent), () => finish(source, START_VERIFICATION, intent, { store }));
  return { store, open, unclear, setUnclear, asked, look, press, goOn };
}

type Result = NonNullable<StartVerificationMutation['createPennyValidation']>;
type Done = Extract<Outcome<Result>, { status: 'done' }>;

const nameOf = (input: Verification): string => JSON.stringify(input);

// No other payments are made here.
const inputOf = ({ input }: Intent) => input as unknown as Verification;

const isSent = ({ result }: Intent): boolean =>
  (result as Partial<Result> | undefined)?.__typename === 'CreatePennyValidationSuccess';

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
