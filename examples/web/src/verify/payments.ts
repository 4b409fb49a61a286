import {
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
import { explainRefusal } from '../ui/problem.ts';
import { verification } from '../ui/route.ts';
import { START_VERIFICATION } from './documents.ts';

export interface Verification {
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

const KEPT = 'pasarela.intents.';

/** Of one client, for all tabs of this browser: ids and keys, no names. */
const storeOf = (clientId: string) => intentStore(localStorage, `${KEPT}${clientId}`);

/** Forgets the payments of all clients whose end was seen. Each other one keeps its key, so that it is not paid again. */
export async function forgetPayments(): Promise<void> {
  for (const key of Object.keys(localStorage).filter((each) => each.startsWith(KEPT))) {
    await forgetSettled(intentStore(localStorage, key));
  }
}

export interface OpenVerification {
  readonly input: Verification;
  /**
   * Lets go of it, once somebody has found out elsewhere what became of it: the next one is another payment. Undefined as
   * long as asking may still tell.
   */
  readonly forget: (() => void) | undefined;
}

export interface Payments {
  /** Verifications of which nobody has seen the end: the answer was lost, or the page was closed before it came. */
  readonly open: readonly OpenVerification[];
  readonly sending: boolean;
  readonly problem: string | undefined;
  /** Starts a verification, or asks what became of an equal one. On success the address moves on to it. */
  send(input: Verification): Promise<void>;
}

export function usePayments(source: Source, clientId: string): Payments {
  const { t } = useSpeech();
  const store = useMemo(() => storeOf(clientId), [clientId]);
  const [open, setOpen] = useState<readonly Intent[]>([]);
  /** Keys of those that the gateway can tell nothing more of. */
  const [unclear, setUnclear] = useState<readonly string[]>([]);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();

  const look = useCallback(async () => {
    setOpen(await unsettled(store));
  }, [store]);
  const untold = useCallback(() => setProblem(t.unstorable), [t]);
  useEffect(() => {
    look().catch(untold);
  }, [look, untold]);

  const send = async (input: Verification): Promise<void> => {
    setProblem(undefined);
    setSending(true);
    const outcome = await pay(source, START_VERIFICATION, input, { store }).catch(() => undefined);
    setSending(false);
    // The browser cannot keep the intent: nothing was sent without it.
    if (outcome === undefined) return setProblem(t.unstorable);
    if (outcome.status === 'done') {
      // The address shows it from now on, also after a reload.
      location.hash = verification(outcome.result.transaction.id);
      // If the browser cannot keep that it was seen, it is shown once more.
      return outcome.acknowledge().catch(() => {});
    }
    setProblem(told(outcome));
    if (outcome.status === 'unknown' && !outcome.safeToRetry) {
      setUnclear((before) => [...before, outcome.intent.idempotencyKey]);
    }
    return look().catch(untold);
  };
  const told = (outcome: Exclude<Outcome<Result>, { status: 'done' }>): string =>
    outcome.status === 'refused'
      ? explainRefusal(outcome.code, outcome.message, t)
      : `${t.unknown.title}. ${outcome.safeToRetry ? t.unknown.safe : t.unknown.unsafe}`;
  const letGo = async (key: string): Promise<void> => {
    setProblem(undefined);
    await forget(store, key).then(look).catch(untold);
  };
  return {
    open: open.map(({ input, idempotencyKey }) => ({
      // No other payments are made here.
      input: input as unknown as Verification,
      forget: unclear.includes(idempotencyKey) ? () => void letGo(idempotencyKey) : undefined,
    })),
    sending,
    problem,
    send,
  };
}

type Result = NonNullable<StartVerificationMutation['createPennyValidation']>;
