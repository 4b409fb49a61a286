import {
  forget,
  forgetSettled,
  intentStore,
  type Outcome,
  pay,
  type Source,
  unsettled,
} from '@pasarela/client';
import AsyncStorage from '@react-native-async-storage/async-storage';
import { randomUUID } from 'expo-crypto';
import type { StartVerificationMutation } from '../gql/graphql.ts';
import { START_VERIFICATION } from './documents.ts';

const KEPT = 'pasarela.intents.';

/** Of one client: ids and keys, no names. */
const storeOf = (clientId: string) => intentStore(AsyncStorage, `${KEPT}${clientId}`);

/** Forgets the payments of all clients whose end was seen. Each other one keeps its key, so that it is not paid again. */
export async function forgetPayments(): Promise<void> {
  const keys = await AsyncStorage.getAllKeys();
  for (const key of keys.filter((each) => each.startsWith(KEPT))) {
    await forgetSettled(intentStore(AsyncStorage, key));
  }
}

export interface Verification {
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

/** Sends the cent, once: whatever happens to the network or the app, the same verification is never paid twice. */
export const verify = (source: Source, clientId: string, input: Verification): Promise<Outcome<Result>> =>
  pay(source, START_VERIFICATION, input, {
    store: storeOf(clientId),
    newKey: randomUUID,
  });

/** Lets go of one, once somebody has found out elsewhere what became of it: the next one is another payment. */
export const letGo = (clientId: string, idempotencyKey: string): Promise<void> =>
  forget(storeOf(clientId), idempotencyKey);

/** A verification of which nobody has seen the end: the app was closed, or the network was gone. */
export async function findUnseen(clientId: string): Promise<Verification | undefined> {
  const [intent] = await unsettled(storeOf(clientId));
  // No other payments are made here.
  return intent?.input as Verification | undefined;
}

type Result = NonNullable<StartVerificationMutation['createPennyValidation']>;
