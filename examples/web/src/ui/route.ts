import { useSyncExternalStore } from 'react';

/** The screens, as the address names them: a reload comes back to the same one. */
export type Route =
  | { readonly screen: 'verify'; readonly transactionId: string | undefined }
  | { readonly screen: 'money-in' };

export const VERIFY = '#/verify';
export const MONEY_IN = '#/money-in';
export const verification = (transactionId: string): string => `${VERIFY}/${transactionId}`;

export function useRoute(): Route {
  const hash = useSyncExternalStore(
    (listener) => {
      addEventListener('hashchange', listener);
      return () => removeEventListener('hashchange', listener);
    },
    () => location.hash,
  );
  if (hash.startsWith(MONEY_IN)) return { screen: 'money-in' };
  return {
    screen: 'verify',
    transactionId: hash.startsWith(`${VERIFY}/`) ? hash.slice(VERIFY.length + 1) : undefined,
  };
}
