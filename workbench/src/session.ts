import { create } from 'zustand';
import { GRAPH_URL, ownUrl } from './addresses.ts';
import { tabStorage } from './browser-storage.ts';
import { t } from './words.ts';

/** What the gateway tells its page (src/workbench/workbench.ts). */
interface Gateway {
  /** Names one start of the gateway. */
  readonly instance: string;
  readonly introspection: boolean;
  readonly auth: 'passthrough' | 'service';
  /** `elsewhere`: there is one, for pages that are opened on its own machine. */
  readonly sandbox: false | 'here' | 'elsewhere';
}

export interface Account {
  readonly id: string;
  readonly alias: string;
  readonly clabe: string;
}

/** What of `GET /sandbox` is used here (docs/sandbox.md). */
export interface Sandbox {
  readonly name: string;
  readonly clientId: string;
  readonly accessToken: string;
  readonly centralizingInstrumentId: string;
  readonly clabeInstrumentIds: readonly string[];
  readonly accounts: readonly (Account & { readonly instrumentId: string })[];
  readonly clock: { readonly now: string; readonly speed: number };
}

interface Session {
  readonly gateway: Gateway | undefined;
  readonly sandbox: Sandbox | undefined;
  /** What operations are sent with: the sandbox's, or one that was given. */
  readonly token: string | undefined;
  /** The token that the gateway has refused, so that a person is asked for another. */
  readonly refused: string | undefined;
  /** False from the first request that found no gateway until one is found. */
  readonly isReachable: boolean;
  /** What the page has to say about its gateway, until it is read. */
  readonly notice: string | undefined;
}

/** For this tab of the browser, until it is closed. */
const TOKEN_KEY = 'pasarela:token';
const RETRY_MS = 1_000;
/** How often a page that is looked at makes sure of its gateway. */
const WATCH_MS = 5_000;
/** Longest wait for an answer that takes milliseconds. */
const PATIENCE_MS = 3_000;

export const useSession = create<Session>(() => ({
  gateway: undefined,
  sandbox: undefined,
  token: undefined,
  refused: undefined,
  isReachable: true,
  notice: undefined,
}));

const read = async <T>(path: string): Promise<T> => {
  const response = await fetch(ownUrl(path), { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!response.ok) throw new Error(`${path} is answered with ${response.status}`);
  // The gateway and its page are built and released together.
  return (await response.json()) as T;
};

/**
 * Asks the gateway what it is, and the sandbox for a token that is good now.
 *
 * @returns whether the gateway answers.
 */
async function ask(): Promise<boolean> {
  try {
    const gateway = await read<Gateway>('session');
    const sandbox = gateway.sandbox === 'here' ? await read<Sandbox>('sandbox') : undefined;
    const before = useSession.getState();
    const isOther = before.gateway !== undefined && before.gateway.instance !== gateway.instance;
    useSession.setState({
      gateway,
      sandbox,
      token: givenToken(gateway, sandbox) ?? tabStorage.getItem(TOKEN_KEY) ?? undefined,
      isReachable: true,
      ...(isOther ? { notice: t('The gateway was restarted. The page carries on with it.') } : {}),
    });
    return true;
  } catch {
    useSession.setState({ isReachable: false });
    return false;
  }
}

/** The sandbox's own token, where that is what callers bring. */
const givenToken = ({ auth }: Gateway, sandbox: Sandbox | undefined): string | undefined =>
  auth === 'passthrough' ? sandbox?.accessToken : undefined;

/** Whether the page has to ask a person for a token. */
export const asksForToken = ({ gateway, sandbox }: Session): boolean =>
  gateway !== undefined && givenToken(gateway, sandbox) === undefined;

let asking: Promise<boolean> | undefined;

/** Asks once for all that want to know. */
export function refreshSession(): Promise<boolean> {
  asking ??= ask().finally(() => {
    asking = undefined;
  });
  return asking;
}

let waiting: Promise<void> | undefined;

/** Resolves once the gateway answers; the page says meanwhile that it does not. */
export function untilReachable(): Promise<void> {
  const wait = async () => {
    while (!(await refreshSession())) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  };
  waiting ??= wait().finally(() => {
    waiting = undefined;
  });
  return waiting;
}

/** Notices a gateway that is gone or was started again, also while nothing is sent. */
export function watchGateway(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') void untilReachable();
  }, WATCH_MS);
  for (const change of ['online', 'offline']) window.addEventListener(change, () => void untilReachable());
}

/** Takes a token, as long as the gateway does. @returns whether it does. */
export async function signIn(token: string): Promise<boolean> {
  const bare = token.trim().replace(/^Bearer +/i, '');
  if (!(await accepts(bare))) return false;
  tabStorage.setItem(TOKEN_KEY, bare);
  useSession.setState({ token: bare, refused: undefined });
  return true;
}

/**
 * Whether the gateway knows a caller by this token. What the caller may do is another question.
 *
 * @throws Error where the gateway does not say.
 */
async function accepts(token: string): Promise<boolean> {
  // Nothing else can be a token, nor stand in a header.
  if (!/^[\x21-\x7e]+$/.test(token)) return false;
  const response = await fetch(GRAPH_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: '{ client { id } }' }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const { errors = [] } = (await response.json()) as { errors?: { extensions?: { code?: unknown } }[] };
  return !errors.some(({ extensions }) => extensions?.code === 'UNAUTHENTICATED');
}

/** Told by whoever was refused: the form is shown, and says why. */
export function refuse(token: string | undefined): void {
  if (token !== undefined && token === useSession.getState().token) useSession.setState({ refused: token });
}

/** Resolves once operations are sent with another token than this, or on the signal. */
export function untilOtherToken(token: string | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const isOver = () => signal.aborted || useSession.getState().token !== token;
    const end = () => {
      if (!isOver()) return;
      stop();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const stop = useSession.subscribe(end);
    signal.addEventListener('abort', end);
    end();
  });
}

export function signOut(): void {
  tabStorage.removeItem(TOKEN_KEY);
  useSession.setState({ token: undefined, refused: undefined });
}

/** When a JWT ends; undefined where it does not say. */
export function endOf(token: string): Date | undefined {
  try {
    const [, payload = ''] = token.split('.');
    const { exp } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/'))) as { exp?: unknown };
    return typeof exp === 'number' ? new Date(exp * 1000) : undefined;
  } catch {
    return undefined;
  }
}
