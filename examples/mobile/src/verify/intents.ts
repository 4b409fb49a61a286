import {
  finish,
  forget,
  forgetSettled,
  type Intent,
  type IntentStore,
  intentStore,
  type Outcome,
  pay,
  type Source,
  type Standing,
  standingOf,
} from '@pasarela/client';
import AsyncStorage from '@react-native-async-storage/async-storage';
import { randomUUID } from 'expo-crypto';
import { useCallback, useMemo, useRef, useState } from 'react';
import type { StartVerificationMutation } from '../gql/graphql.ts';
import { BECAME, START_VERIFICATION } from './documents.ts';

export interface Verification {
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

export interface Order extends Verification {
  readonly externalReference: string;
}

export type Result = NonNullable<StartVerificationMutation['createPennyValidation']>;
export type Refusal = Extract<Outcome<Result>, { status: 'refused' }>;

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

// No other payments are made here.
export const inputOf = ({ input }: Intent) => input as unknown as Verification;

export const nameOf = (input: Verification): string => JSON.stringify(input);

/**
 * True if asking tells nothing more for now. With a `code` the last call was refused, and one before it has no answer: the
 * gateway cannot call that the end.
 */
const isUnclear = (outcome: Outcome<Result>): boolean =>
  outcome.status === 'unknown' && (!outcome.safeToRetry || outcome.code !== undefined);

/** Those that stand so, of those whose end nobody has seen. */
const those = async (
  store: IntentStore,
  ...standings: readonly (Standing | undefined)[]
): Promise<readonly Intent[]> =>
  (await store.load()).filter((intent) => standings.includes(standingOf(intent)));

/** Lets go of one that is unpaid. A call of it may have been sent since it was listed: it stays then. */
async function dropUnpaid(store: IntentStore, key: string): Promise<void> {
  for (;;) {
    const before = await store.load();
    const after = before.filter((each) => each.idempotencyKey !== key || standingOf(each) !== 'unpaid');
    if (after.length === before.length || (await store.save(after, before)) !== false) return;
  }
}

/**
 * What the store keeps of verifications of which nobody has seen the end.
 *
 * @param signal leaves those that are under way @param untold called if the store fails
 */
export function useIntents(source: Source, owner: string, signal: AbortSignal, untold: () => void) {
  const store = useMemo(() => storeOf(owner), [owner]);
  const [open, setOpen] = useState<readonly Intent[]>();
  /** Those that are asked about. */
  const [asked] = useState(() => new Set<string>());
  const [refusals, setRefusals] = useState<readonly Refusal[]>([]);
  /** Keys of those of which asking tells nothing more. */
  const [unclear, setUnclear] = useState<readonly string[]>([]);

  const addRefusal = (refusal: Refusal) => setRefusals((before) => [...before, refusal]);
  const dropRefusal = async (refusal: Refusal): Promise<void> => {
    setRefusals((before) => before.filter((each) => each !== refusal));
    // If the phone cannot keep that it was seen, it is shown once more.
    await refusal.acknowledge().catch(() => {});
  };
  const gathered = useRef<Promise<void>>(undefined);
  /** Reads the refusals before anything is sent, because what is sent drops those of more than an hour. Sends nothing. */
  const gather = async (): Promise<void> => {
    for (const intent of await those(store, 'refused')) {
      const outcome = await finish(source, START_VERIFICATION, intent, { store, signal });
      if (outcome.status === 'refused') addRefusal(outcome);
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: gathered once.
  const look = useCallback(async (): Promise<readonly Intent[]> => {
    gathered.current ??= gather().catch(untold);
    await gathered.current;
    const found = (await those(store, 'done', 'unknown', 'late', 'unpaid').catch(untold)) ?? [];
    const shown = found.filter((each) => standingOf(each) !== 'unpaid' || !asked.has(nameOf(inputOf(each))));
    setOpen(shown);
    return shown;
  }, [store, asked, untold]);
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
    ask(input, () => pay(source, START_VERIFICATION, input, { store, newKey: randomUUID, signal }));
  // `pay` would send another one where it has ended meanwhile.
  const goOn = (intent: Intent) =>
    ask(inputOf(intent), () => finish(source, START_VERIFICATION, intent, { store, signal }));
  const letGo = async (intent: Intent): Promise<void> => {
    const { idempotencyKey: key } = intent;
    await (standingOf(intent) === 'unpaid' ? dropUnpaid(store, key) : forget(store, key)).catch(untold);
    await look();
  };
  return { open, refusals, addRefusal, dropRefusal, unclear, setUnclear, asked, look, press, goOn, letGo };
}

/** True if the gateway knows how a payment has ended. Asking for that sends nothing. */
export const hasEnded = (source: Source, { idempotencyKey: key }: Intent): Promise<boolean> =>
  source.query(BECAME, { key }).then(
    ({ data }) => data?.payment?.state === 'DONE' || data?.payment?.state === 'REFUSED',
    () => false,
  );
