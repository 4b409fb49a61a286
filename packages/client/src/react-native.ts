import type { Presence } from './presence.ts';

/** React Native's `AppState`, as far as it is needed here. */
interface AppStateLike {
  addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
}

/** `expo-network`, or NetInfo with its `addEventListener` under this name. */
interface NetworkLike {
  addNetworkStateListener(listener: (state: { isConnected?: boolean | null }) => void): { remove(): void };
}

/**
 * Leaves the gateway while the app is in the background, and comes back at once when it returns or when the network does:
 * `follow(…, { presence: nativePresence(AppState, Network) })`.
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
