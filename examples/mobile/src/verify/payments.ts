import { intentStore, type Outcome, pay, type Source, unsettled } from '@pasarela/client';
import AsyncStorage from '@react-native-async-storage/async-storage';
import { randomUUID } from 'expo-crypto';
import type { StartVerificationMutation } from '../gql/graphql.ts';
import { START_VERIFICATION } from './documents.ts';

const store = intentStore(AsyncStorage, 'pasarela.intents');

export interface Verification {
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
}

/** Sends the cent, once: whatever happens to the network or the app, the same verification is never paid twice. */
export const verify = (
  source: Source,
  input: Verification,
): Promise<Outcome<StartVerificationMutation['createPennyValidation']>> =>
  pay(source, START_VERIFICATION, input, { store, newKey: randomUUID });

/** A verification of which nobody has seen the end: the app was closed, or the network was gone. */
export async function findUnseen(): Promise<Verification | undefined> {
  const [intent] = await unsettled(store);
  // No other payments are made here.
  return intent?.input as Verification | undefined;
}
