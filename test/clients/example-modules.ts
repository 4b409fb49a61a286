import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
import type { Intent } from '../../packages/client/src/index.ts';
import { folder } from '../helpers/packages.ts';

const urlOf = (path: string): string => pathToFileURL(folder(path)).href;
const EXAMPLES = urlOf('examples/');
const PARTS = urlOf('test/clients/example-parts.ts');
const CLIENT = urlOf('packages/client/src/index.ts');

// An example has packages of its own where it was installed: its hooks need the React that renders them here.
registerHooks({
  resolve(specifier, context, next) {
    if (!context.parentURL?.startsWith(EXAMPLES)) return next(specifier, context);
    if (/^@react-native-async-storage|^expo-crypto$|\/i18n\.tsx$|\/gql\/index\.ts$/.test(specifier))
      return next(PARTS, context);
    if (specifier === '@pasarela/client') return next(CLIENT, context);
    // Of urql they import the class of its errors, which @urql/core has.
    if (specifier === 'urql') return next('@urql/core', { ...context, parentURL: import.meta.url });
    return next(specifier, specifier.startsWith('.') ? context : { ...context, parentURL: import.meta.url });
  },
});

/** Of what `usePayments` of an example returns, what the tests look at. */
export interface Payments {
  readonly open:
    | readonly { readonly key: string; readonly standing: string; readonly forget?: () => void }[]
    | undefined;
  readonly sending: boolean;
  send(input: Pick<Intent, 'input'>['input']): Promise<void>;
}

/** Loads a module of an example as it stands. */
// biome-ignore lint/suspicious/noExplicitAny: the root has no types of the packages that it imports.
export const exampleModule = (path: string): Promise<any> => import(urlOf(`examples/${path}`));

/** A hook that is shown: what it has returned, and returned last. */
interface Shown<Result> {
  readonly told: readonly Result[];
  readonly now: Result;
  leave(): void;
}

/** Shows a hook. */
export function showHook<Result>(hook: () => Result): Shown<Result> {
  const told: Result[] = [];
  const Screen = () => {
    told.push(hook());
    return null;
  };
  // React's renderer begins within `act` alone, and goes on by itself outside of it.
  const root = during(() => create(createElement(Screen)));
  return {
    told,
    get now() {
      // It is drawn as it is shown.
      return told.at(-1) as Result;
    },
    leave: () => during(() => root.unmount()),
  };
}

function during<Result>(work: () => Result): Result {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  let result: Result | undefined;
  act(() => {
    result = work();
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
  return result as Result;
}
