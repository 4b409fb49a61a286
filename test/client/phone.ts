/** What React Native's `AppState` and `expo-network` tell an app, as far as a test tells it. */
export interface Phone {
  readonly appState: {
    addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
  };
  readonly network: {
    addNetworkStateListener(listener: (state: { isConnected: boolean }) => void): { remove(): void };
  };
  /** Tells of the app's state. */
  becomes(state: 'background' | 'active'): void;
  /** Tells that the network is back. */
  connected(): void;
}

export function startPhone(): Phone {
  const states = new Set<(state: string) => void>();
  const networks = new Set<(state: { isConnected: boolean }) => void>();
  return {
    appState: { addEventListener: (_, listener) => added(states, listener) },
    network: { addNetworkStateListener: (listener) => added(networks, listener) },
    becomes(state) {
      for (const listener of states) listener(state);
    },
    connected() {
      for (const isConnected of [false, true]) for (const listener of networks) listener({ isConnected });
    },
  };
}

function added<Listener>(listeners: Set<Listener>, listener: Listener): { remove(): void } {
  listeners.add(listener);
  return { remove: () => void listeners.delete(listener) };
}
