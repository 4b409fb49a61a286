import { exec } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose/jwt/decode';
import { z } from 'zod';
import type { Variables } from '../app/variables.ts';
import { clock } from '../common/clock.ts';
import { CommandError } from './command.ts';
import { reasonOf } from './doctor/finding.ts';

/** A token is renewed this long before it ends, in milliseconds, or in the last tenth of its life if that is shorter. */
const RENEW_BEFORE_MS = 60_000;
/** How long the command, or the identity provider, may take, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** The source of a command's access token. */
export interface Token {
  /** True if another token may be had after one was refused. */
  readonly renews: boolean;
  /**
   * Returns the token to use.
   *
   * @param refused the one that the gateway has just refused. Another one is then fetched, if there may be one.
   * @throws CommandError if none can be had
   */
  get(refused?: string): Promise<string>;
}

/** The variables that name the source of the token. One way of them must be set. */
type TokenVariables = Pick<
  Variables,
  | 'PASARELA_TOKEN'
  | 'PASARELA_TOKEN_FILE'
  | 'PASARELA_TOKEN_COMMAND'
  | 'PASARELA_TOKEN_URL'
  | 'PASARELA_TOKEN_CLIENT_ID'
  | 'PASARELA_TOKEN_CLIENT_SECRET'
  | 'PASARELA_TOKEN_SCOPE'
>;

/**
 * Returns the token source of the variables: a token, a file that another program renews, a command that prints one, or an
 * identity provider that issues one for client credentials (RFC 6749, 4.4).
 *
 * @throws CommandError if no way, or more than one, is set
 */
export function tokenOf(variables: TokenVariables): Token {
  const { PASARELA_TOKEN: text, PASARELA_TOKEN_FILE: file } = variables;
  const { PASARELA_TOKEN_COMMAND: command, PASARELA_TOKEN_URL: url } = variables;
  const ways = [
    text && (() => fixed(wordIn(text.reveal(), 'PASARELA_TOKEN'))),
    file && (() => inFile(file)),
    command && (() => kept(() => printedBy(command.reveal()))),
    url && (() => kept(() => issuedBy(url, variables))),
  ].filter((way) => way !== undefined && way !== '');
  const [way] = ways;
  if (way === undefined) {
    throw new CommandError(
      'PASARELA_TOKEN is not set: it holds an access token that the gateway accepts. One that renews comes from PASARELA_TOKEN_FILE, PASARELA_TOKEN_COMMAND or PASARELA_TOKEN_URL.',
    );
  }
  if (ways.length > 1) {
    throw new CommandError(
      'PASARELA_TOKEN, PASARELA_TOKEN_FILE, PASARELA_TOKEN_COMMAND, PASARELA_TOKEN_URL: several are set, wants one.',
    );
  }
  return way();
}

const fixed = (token: string): Token => ({ renews: false, get: async () => token });

/** Reads the file whenever a token is needed, so that the program that renews it need not tell. */
const inFile = (path: string): Token => ({
  renews: true,
  async get() {
    try {
      return wordIn(await readFile(path, 'utf8'), path);
    } catch (cause) {
      if (cause instanceof CommandError) throw cause;
      throw new CommandError(`PASARELA_TOKEN_FILE: ${path} cannot be read: ${String(cause)}`, { cause });
    }
  },
});

interface Issued {
  readonly token: string;
  /** When the token ends, in milliseconds since the epoch; undefined if that is not known. */
  readonly expiresAt: number | undefined;
}

/** Fetches a token once for all who ask, keeps it until it is about to end, and fetches another if it was refused. */
function kept(fetch: () => Promise<Issued>): Token {
  let held: (Issued & { readonly renewAt: number }) | undefined;
  let fetching: Promise<string> | undefined;
  const renew = async (): Promise<string> => {
    const fetchedAt = clock.now();
    const { token, expiresAt } = await fetch();
    // If the end has already passed, the clocks differ: it is ignored, and a refusal leads to the next one.
    const life =
      expiresAt !== undefined && expiresAt > fetchedAt ? expiresAt - fetchedAt : Number.POSITIVE_INFINITY;
    held = { token, expiresAt, renewAt: fetchedAt + life - Math.min(RENEW_BEFORE_MS, life / 10) };
    return token;
  };
  return {
    renews: true,
    async get(refused) {
      if (held !== undefined && held.token !== refused && clock.now() < held.renewAt) return held.token;
      fetching ??= renew().finally(() => {
        fetching = undefined;
      });
      return fetching;
    },
  };
}

async function printedBy(command: string): Promise<Issued> {
  try {
    const { stdout } = await promisify(exec)(command, { timeout: TIMEOUT_MS });
    const token = wordIn(stdout, 'the command');
    return { token, expiresAt: endOf(token) };
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    // The error's message repeats the command, and what it has written may hold a secret.
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no code';
    throw new CommandError(`PASARELA_TOKEN_COMMAND ended with ${code}.`, { cause });
  }
}

const Answer = z.object({
  access_token: z.string().min(1),
  // Some providers write a text. Where it is no time, the token may say itself when it ends.
  expires_in: z.coerce.number().positive().optional().catch(undefined),
});

/** An answer with an error, such as `invalid_client` or `invalid_scope` (RFC 6749, 5.2). What else it holds may repeat what was sent. */
const Refusal = z.object({ error: z.string().regex(/^[a-z_]{1,64}$/) });

async function issuedBy(url: string, variables: TokenVariables): Promise<Issued> {
  const { PASARELA_TOKEN_CLIENT_ID: id, PASARELA_TOKEN_CLIENT_SECRET: secret } = variables;
  if (id === undefined || secret === undefined) {
    throw new CommandError(
      'PASARELA_TOKEN_URL is set, and PASARELA_TOKEN_CLIENT_ID or PASARELA_TOKEN_CLIENT_SECRET is not.',
    );
  }
  const scope = variables.PASARELA_TOKEN_SCOPE;
  let response: Response;
  try {
    response = await fetch(url, {
      method: 'POST',
      // Id and secret are form-encoded before they are joined (RFC 6749, 2.3.1).
      headers: {
        authorization: `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret.reveal())}`).toString('base64')}`,
        accept: 'application/json',
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) }),
      redirect: 'error',
      signal: clock.timeoutSignal(TIMEOUT_MS),
    });
  } catch (cause) {
    throw new CommandError(`PASARELA_TOKEN_URL does not answer: ${reasonOf(cause)}`, { cause });
  }
  const body: unknown = await response.json().catch(() => undefined);
  const answer = Answer.safeParse(body).data;
  if (!response.ok || answer === undefined) {
    const code = Refusal.safeParse(body).data?.error;
    const why = code === undefined ? '' : `, and said ${code}`;
    throw new CommandError(`PASARELA_TOKEN_URL gave no token: it answered ${response.status}${why}.`);
  }
  const { access_token: token, expires_in: seconds } = answer;
  return { token, expiresAt: seconds === undefined ? endOf(token) : clock.now() + seconds * 1_000 };
}

const formEncoded = (text: string): string => new URLSearchParams({ text }).toString().slice('text='.length);

function wordIn(text: string, source: string): string {
  const word = text.trim();
  // Typographic quotation marks of a text program among them: no header may hold one, and fetch says what a gateway that is away says.
  if (!/^[\w.~+/-]+=*$/.test(word))
    throw new CommandError(
      `${source} holds no access token: wants one word, without Bearer, quotation marks or accents.`,
    );
  return word;
}

/** Returns the `exp` of a JWT, unverified: it only says when to fetch the next token. */
function endOf(token: string): number | undefined {
  try {
    const { exp } = decodeJwt(token);
    return exp === undefined ? undefined : exp * 1_000;
  } catch {
    return undefined;
  }
}
