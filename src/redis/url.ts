/** The parts of a `REDIS_URL`. `tls` and the credentials hold for every node. */
export interface RedisTarget {
  readonly form: 'standalone' | 'sentinel' | 'cluster';
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Database number; always 0 in a Cluster, which has no other. */
  readonly db: number;
  /** Sentinel only: the name of the group of Redis processes. */
  readonly primaryName: string | undefined;
  /** Sentinel only: the password of the Sentinels themselves. */
  readonly sentinelPassword: string | undefined;
  readonly tlsFiles: TlsFiles;
}

/** Paths of PEM files, for Redis and for the Sentinels. */
export interface TlsFiles {
  /** The trusted authorities, instead of Node's own. */
  readonly ca: string | undefined;
  /** The certificate that the gateway shows, with the certificates between it and its authority. */
  readonly cert: string | undefined;
  /** The key of that certificate. */
  readonly key: string | undefined;
}

const FORMS = [
  'redis://[user:password@]host[:port][/db]',
  'redis+sentinel://[user:password@]host[:port],host[:port]/primaryName[?db=0&sentinelPassword=…]',
  'redis+cluster://[user:password@]host[:port],host[:port]',
];

/** The forms of a `REDIS_URL`, for the operator. */
const REDIS_URL_FORMS = `${FORMS.join(' or ')} (rediss… for TLS)`;

const DEFAULT_PORT = { standalone: 6379, sentinel: 26379, cluster: 6379 } as const;

/**
 * Parses a `REDIS_URL`: `redis://`, `redis+sentinel://` and `redis+cluster://`, each with TLS as `rediss…`.
 *
 * @throws {TypeError} with the known forms. The message never repeats the URL, which holds a password.
 */
export function parseRedisUrl(url: string): RedisTarget {
  const parts =
    /^redis(s?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/]*)@)?([^/?#]+)(?:\/([^?#]*))?(?:\?(.*))?$/.exec(url);
  if (hasBareSign(url)) {
    throw wrongForm(
      'its user or password holds a /, ?, # or @, which has to be written as %2F, %3F, %23 or %40',
    );
  }
  if (parts === null) throw wrongForm('it has none of these forms');
  const [, tls, kind, credentials = '', hosts = '', path = '', query = ''] = parts;
  // The pattern matches only these two words.
  const form = (kind ?? 'standalone') as RedisTarget['form'];
  const nodes = hosts.split(',').map((host) => node(host, DEFAULT_PORT[form]));
  if (form === 'standalone' && nodes.length > 1) throw wrongForm('redis:// names one host');
  if (form === 'sentinel' && path === '') throw wrongForm('redis+sentinel:// needs the name of the primary');
  const parameters = parametersIn(query);
  const db = Number(parameters.get('db') ?? (form === 'sentinel' ? '0' : path || '0'));
  if (!Number.isSafeInteger(db) || db < 0 || (form === 'cluster' && db !== 0)) {
    throw wrongForm('the database is not a number, or the Cluster is given one');
  }
  const [username = '', ...password] = credentials.split(':');
  return {
    form,
    nodes,
    tls: tls === 's',
    username: decoded(username) || undefined,
    password: decoded(password.join(':')) || undefined,
    db,
    primaryName: form === 'sentinel' ? decoded(path) : undefined,
    sentinelPassword: parameters.get('sentinelPassword') ?? undefined,
    tlsFiles: {
      ca: parameters.get('tlsCa') ?? undefined,
      cert: parameters.get('tlsCert') ?? undefined,
      key: parameters.get('tlsKey') ?? undefined,
    },
  };
}

const PARAMETERS: ReadonlySet<string> = new Set(['db', 'sentinelPassword', 'tlsCa', 'tlsCert', 'tlsKey']);

/**
 * Reads what follows the `?`. A `+` stands for itself, as it does in the user and the password. `URLSearchParams` alone would read it as
 * a space, and so get a password in base64 wrong.
 */
function parametersIn(query: string): URLSearchParams {
  const parameters = new URLSearchParams(query.replaceAll('+', '%2B'));
  const isStrange = (part: string) => !PARAMETERS.has(part.replace(/=.*/s, ''));
  if (parameters.has('sentinelPassword') && query.split('&').some(isStrange)) {
    throw wrongForm(
      'what follows an & beside sentinelPassword is no parameter; an & within that password has to be written as %26',
    );
  }
  return parameters;
}

/** True if the user or the password, before the last @, holds a sign that would end it. */
function hasBareSign(url: string): boolean {
  const [address = ''] = url.replace(/^[^/]*:\/\//, '').split(/\?(?=(?:db|sentinelPassword|tls\w+)=)/);
  return /[/?#@]/.test(address.slice(0, Math.max(0, address.lastIndexOf('@'))));
}

/** Adds the TLS files to a `REDIS_URL`, so that every connection made by it uses them. */
export function withTlsFiles(url: string, { ca, cert, key }: TlsFiles): string {
  const parameters = Object.entries({ tlsCa: ca, tlsCert: cert, tlsKey: key }).flatMap(([name, path]) =>
    path === undefined ? [] : [`${name}=${encodeURIComponent(path)}`],
  );
  if (parameters.length === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${parameters.join('&')}`;
}

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

function node(text: string, defaultPort: number): RedisNode {
  let parsed: URL;
  try {
    parsed = new URL(`redis://${text}`);
  } catch (cause) {
    throw wrongForm('a host or port cannot be read', cause);
  }
  if (parsed.hostname === '') throw wrongForm('a host has no name');
  return {
    // ioredis wants an IPv6 address without the brackets that a URL puts around it.
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? defaultPort : Number(parsed.port),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw wrongForm('a % is not followed by two hexadecimal digits; a % itself is written as %25', cause);
  }
}

function wrongForm(problem: string, cause?: unknown): TypeError {
  return new TypeError(`REDIS_URL: got a value, and ${problem}; wants ${REDIS_URL_FORMS}`, { cause });
}
