import { nativePresence } from '@pasarela/client/react-native';
import * as Network from 'expo-network';
import { AppState } from 'react-native';

/** The app leaves the gateway in the background, and comes back at once with the app or the network. */
export const presence = nativePresence(AppState, Network);
