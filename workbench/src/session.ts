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

type EndedBy = 'clock' | 'gateway';

interface Session {
  readonly gateway: Gateway | undefined;
  readonly sandbox: Sandbox | undefined;
  /** What operations are sent with: the sandbox's, or one that was given. */
  readonly token: string | undefined;
  /** The token that has ended, so that a person is asked for another, and what has told so first. */
  readonly ended: { readonly token: string; readonly by: EndedBy } | undefined;
  /** Whether the gateway has accepted a token after its end by this browser's clock. */
  readonly isClockAhead: boolean;
  /** False from the first request that found no gateway until one is found. */
  readonly isReachable: boolean;
  /** What the page has to say about its gateway, until it is read. */
  readonly notice: string | undefined;
}

/** For this tab of the browser, until it is closed. */
const TOKEN_KEY = 'pasarela:token';
const CLOCK_KEY = 'pasarela:clock-ahead';
const RETRY_MS = 1_000;
/** How often a page that is looked at makes sure of its gateway. */
const WATCH_MS = 5_000;
/** Longest wait for an answer that takes milliseconds. */
export const PATIENCE_MS = 3_000;

export const useSession = create<Session>(() => ({
  gateway: undefined,
  sandbox: undefined,
  token: undefined,
  ended: undefined,
  isClockAhead: tabStorage.getItem(CLOCK_KEY) !== null,
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
      // Behind a balancer another process may answer each time. With a sandbox there is one process alone.
      ...(isOther && (sandbox !== undefined || !before.isReachable)
        ? { notice: t('The gateway was restarted. The page carries on with it.') }
        : {}),
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
  const end = endOf(bare)?.getTime() ?? Number.POSITIVE_INFINITY;
  const isClockAhead = useSession.getState().isClockAhead || end <= Date.now();
  if (isClockAhead) tabStorage.setItem(CLOCK_KEY, 'yes');
  useSession.setState({ token: bare, ended: undefined, isClockAhead });
  return true;
}

interface ClientAnswer {
  readonly data?: { readonly client?: unknown } | null;
  readonly errors?: readonly { readonly extensions?: { readonly code?: unknown } }[];
}

/** Why this query is refused to a caller who may ask others, or to anybody where the gateway takes documents of a list alone. */
const SAID_OF_QUERIES = ['FORBIDDEN', 'PERSISTED_QUERY_NOT_SUPPORTED'];

/**
 * Whether the gateway knows a caller by this token. What the caller may do is another question.
 *
 * @throws Error where the gateway does not say.
 */
async function accepts(token: string): Promise<boolean> {
  // Nothing else can be a token, nor stand in a header.
  if (!/^[\x21-\x7e]+$/.test(token)) return false;
  const { client, codes } = await askForClient(token);
  if (codes.has('UNAUTHENTICATED')) return false;
  if (client == null && !isOfQuery(codes)) throw new Error('The answer says nothing of the token.');
  return true;
}

const isOfQuery = (codes: ReadonlySet<unknown>): boolean => SAID_OF_QUERIES.some((code) => codes.has(code));

async function askForClient(token: string) {
  const response = await fetch(GRAPH_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: '{ client { id } }' }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const { data, errors = [] } = (await response.json()) as ClientAnswer;
  return { client: data?.client, codes: new Set(errors.map(({ extensions }) => extensions?.code)) };
}

/** Has the form shown. What has told first stays: a reason that changes is read out twice. */
export function endToken(token: string, by: EndedBy): void {
  const { token: current, ended } = useSession.getState();
  if (token === current && token !== ended?.token) useSession.setState({ ended: { token, by } });
}

let confirming: { readonly token: string; readonly isRefused: Promise<boolean | undefined> } | undefined;

/**
 * Asks the gateway about a token once something was refused under it: the service may refuse this alone, under a token that it
 * accepts (PROTOCOL.md, T7). Where the token is refused, the page shows the form. Who asks while an answer is awaited gets that answer.
 *
 * @returns whether the token is refused; undefined where the gateway does not say.
 */
export async function confirmRefusal(token: string | undefined): Promise<boolean | undefined> {
  if (token === undefined) return true;
  if (confirming?.token !== token) {
    const isRefused = askForClient(token).then(
      // A gateway that refuses this query, such as for its list of documents, may not have looked at the token: a person is asked for another.
      ({ client, codes }) =>
        client == null && (codes.has('UNAUTHENTICATED') || isOfQuery(codes) || undefined),
      () => undefined,
    );
    const mine = { token, isRefused };
    confirming = mine;
    void isRefused.then(() => {
      if (confirming === mine) confirming = undefined;
    });
  }
  const isRefused = await confirming.isRefused;
  if (isRefused) endToken(token, 'gateway');
  return isRefused;
}

/** Resolves once operations are sent with another token than this, or with this one once it is accepted, or on the signal. */
export function untilGoodToken(token: string | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const isOver = () => {
      const { token: current, ended } = useSession.getState();
      return signal.aborted || current !== token || (token !== undefined && ended?.token !== token);
    };
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
  useSession.setState({ token: undefined, ended: undefined });
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
