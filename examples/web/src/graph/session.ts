import { ownerOf } from './owner.ts';

/** What the page knows of itself: where the gateway is, and how to get a token for it. */
export interface Session {
  /** Address of `/graphql`. */
  readonly endpoint: string;
  /** The token to show now. */
  token(): string | Promise<string>;
  /** Whose the things are that are kept here: who signs in next must neither see them nor pay with their keys. */
  ownerOf(clientId: string): string;
  /** Whether asking again may bring another token. One that somebody typed in stays what it is. */
  readonly renews: boolean;
  /** Lets an SPEI credit arrive. Only on the sandbox; undefined elsewhere. */
  readonly simulateCredit?: () => Promise<void>;
}

export const DEFAULT_ENDPOINT: string = import.meta.env['VITE_GATEWAY'] ?? 'http://127.0.0.1:4000/graphql';

/**
 * A session with a token that somebody typed in. It stays in memory, because each script of the origin reads what a page
 * stores: a reload asks for it again. An app of yours asks its own backend for one instead (docs/clients/browser.md).
 */
export function typedSession(endpoint: string, token: string): Session {
  return {
    endpoint,
    token: () => token,
    ownerOf: (clientId) => ownerOf(token, clientId),
    renews: false,
  };
}

/** Thrown where the page's own server leads to a sandbox that does not answer. */
class SandboxAway extends Error {}

/**
 * A session on the sandbox, where the page's own server leads to it; else none, and a person has to sign in. Throws where
 * there is a sandbox that does not answer: signing in would not help.
 */
export async function findSession(): Promise<Session | undefined> {
  const sandbox = await readSandbox();
  if (sandbox === undefined) return undefined;
  return {
    endpoint: DEFAULT_ENDPOINT,
    // Asked each time: the sandbox renews its token before it runs out.
    token: async () => (await readSandbox().catch(() => undefined))?.accessToken ?? sandbox.accessToken,
    // Each of its tokens is the client's own.
    ownerOf: (clientId) => clientId,
    renews: true,
    simulateCredit: () => simulateCredit(sandbox.accounts),
  };
}

interface Sandbox {
  readonly accessToken: string;
  readonly accounts: readonly { readonly clabe: string; readonly status: string }[];
}

/** Undefined where the page's own server knows of none. */
async function readSandbox(): Promise<Sandbox | undefined> {
  const response = await fetch('/sandbox', { headers: { accept: 'application/json' } });
  // A server that leads there and finds nobody says 500 (Vite) or 502 to 504.
  if (response.status >= 500) throw new SandboxAway(`/sandbox answered ${response.status}`);
  const isJson = response.headers.get('content-type')?.includes('json') === true;
  return response.ok && isJson ? ((await response.json()) as Sandbox) : undefined;
}

const PAYERS = ['Ana Torres', 'Bruno Salas', 'Carla Núñez', 'Diego Peña', 'Elena Ruiz', 'Fabián Ortega'];

async function simulateCredit(accounts: Sandbox['accounts']): Promise<void> {
  const pick = <T>(from: readonly T[]) => from[Math.floor(Math.random() * from.length)];
  const invoice = Math.floor(1000 + Math.random() * 9000);
  const response = await fetch('/sandbox/spei-credits', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      clabe: pick(accounts.filter(({ status }) => status === 'ACTIVE'))?.clabe,
      amount: `${Math.floor(100 + Math.random() * 20_000)}.${pick(['00', '50', '75'])}`,
      payerName: pick(PAYERS),
      concept: `Factura ${invoice}`,
    }),
  });
  if (!response.ok) throw new SandboxAway(`/sandbox/spei-credits answered ${response.status}`);
}
