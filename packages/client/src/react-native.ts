import type { Presence } from './presence.ts';

/** The members of React Native's `AppState` that are used. */
interface AppStateLike {
  addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
}

/** `expo-network`, or NetInfo with its `addEventListener` under this name. */
interface NetworkLike {
  addNetworkStateListener(listener: (state: { isConnected?: boolean | null }) => void): { remove(): void };
}

/**
 * Ends the connection while the app is in the background, and makes it again when the app or the network returns: `follow(…,
 * { presence: nativePresence(AppState, Network) })`.
 */
export function nativePresence(appState: AppStateLike, network?: NetworkLike): Presence {
  return (present) => {
    const watching = [
      appState.addEventListener('change', (state) => {
        if (state === 'background') present.suspend();
        if (state === 'active') present.resume();
      }),
      network?.addNetworkStateListener(({ isConnected }) => {
        if (isConnected) present.resume();
      }),
    ];
    return () => {
      for (const watch of watching) watch?.remove();
    };
  };
}
