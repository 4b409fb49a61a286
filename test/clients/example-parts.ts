/** What the examples import that the root does not install, or that draws: `example-modules.ts` puts this module in its place. */
import { messages } from '../../examples/web/src/ui/messages.ts';

/** What a phone, or a browser, keeps. */
const kept = new Map<string, string>();

const storage = {
  getItem: async (key: string) => kept.get(key) ?? null,
  setItem: async (key: string, value: string) => void kept.set(key, value),
  getAllKeys: async () => [...kept.keys()],
};

// AsyncStorage, expo-crypto, `ui/i18n.tsx`, and `gql/index.ts`, in this order.
export default storage;
export { randomUUID } from 'node:crypto';
export const useSpeech = () => ({ t: messages.en });
export const graphql = (text: string) => text;
