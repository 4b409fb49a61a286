import type { Presence } from './presence.ts';

/** The members of React Native's `AppState` that are used. */
interface AppStateLike {
  addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
}

interface NetworkState {
  readonly type?: string | undefined;
  readonly isConnected?: boolean | null | undefined;
  readonly isInternetReachable?: boolean | null | undefined;
}

/** `expo-network`. The `addEventListener` of NetInfo returns a function, which has to be wrapped as `{ remove }`. */
interface NetworkLike {
  addNetworkStateListener(listener: (state: NetworkState) => void): { remove(): void };
}

/** What this module listens to for as long as the app runs. */
const kept = new WeakSet<NetworkLike>();

/**
 * Ends the connection while the app is in the background, and makes it again when the app or the network returns: `follow(…,
 * { presence: nativePresence(AppState, Network) })`.
 */
export function nativePresence(appState: AppStateLike, network?: NetworkLike): Presence {
  return (present) => {
    if (network && !kept.has(network)) {
      kept.add(network);
      // On iOS expo-network never tells of the network again once its last listener has left.
      network.addNetworkStateListener(() => {});
    }
    let isAway = false;
    let last = '';
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
      network?.addNetworkStateListener(({ type, isConnected, isInternetReachable }) => {
        // On Android expo-network repeats its state as the signal changes, and `resume` gives up a connection that is being made.
        const state = isConnected ? `${type} ${isInternetReachable}` : '';
        if (state && state !== last && !isAway) present.resume();
        last = state;
      }),
    ];
    return () => {
      for (const watch of watching) watch?.remove();
    };
  };
}
