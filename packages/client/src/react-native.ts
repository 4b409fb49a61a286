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
    let isAway = false;
    const watching = [
      appState.addEventListener('change', (state) => {
        // While a dialog is over the app it is `inactive`, in neither.
        if (state === 'background') {
          isAway = true;
          present.suspend();
        } else if (state === 'active') {
          isAway = false;
          present.resume();
        }
      }),
      network?.addNetworkStateListener(({ isConnected }) => {
        if (isConnected && !isAway) present.resume();
      }),
    ];
    return () => {
      for (const watch of watching) watch?.remove();
    };
  };
}
