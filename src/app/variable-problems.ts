import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Variables, wants } from './variables.ts';

/** The variables that `AUTH_MODE=service` requires, with one client or with several. */
const NEEDED_BY_ONE: readonly (keyof Variables)[] = [
  'UPSTREAM_API_KEY',
  'UPSTREAM_CLIENT_ID',
  'UPSTREAM_CLIENT_SECRET',
  'AUTH_ISSUER',
  'AUTH_AUDIENCE',
];
const NEEDED_BY_SEVERAL: readonly (keyof Variables)[] = ['AUTH_CLIENT_CLAIM', 'AUTH_ISSUER', 'AUTH_AUDIENCE'];

/** Returns what is wrong with variables that are valid each, by the name of the missing one. */
export function problemsBetween(
  values: Readonly<Record<string, string | undefined>>,
  read: Variables | undefined,
): ReadonlyMap<keyof Variables, string> {
  const problems = new Map<keyof Variables, string>();
  if (values['UPSTREAM_URL'] !== undefined && values['WEBHOOK_SECRET'] === undefined) {
    problems.set(
      'WEBHOOK_SECRET',
      `WEBHOOK_SECRET: is not set, and UPSTREAM_URL is; wants ${wants('WEBHOOK_SECRET')}, the same in every process.`,
    );
  }
  const ports = [read?.PORT, read?.SANDBOX_PORT];
  if (
    values['UPSTREAM_URL'] === undefined &&
    ports[0] !== 0 &&
    ports[0] !== undefined &&
    ports[0] === ports[1]
  ) {
    problems.set(
      'SANDBOX_PORT',
      `PORT, SANDBOX_PORT: both are ${ports[0]}; wants two ports, as the embedded sandbox listens beside the gateway.`,
    );
  }
  if (values['NEEDS_REDIS'] === 'true' && values['REDIS_URL'] === undefined) {
    problems.set(
      'REDIS_URL',
      `REDIS_URL: is not set, or empty, and NEEDS_REDIS is true; wants ${wants('REDIS_URL')}, as several processes without it would each have a record of payments of their own.`,
    );
  } else if (values['REUSE_PORT'] === 'true' && values['REDIS_URL'] === undefined) {
    problems.set(
      'REDIS_URL',
      `REDIS_URL: is not set, and REUSE_PORT is true; wants ${wants('REDIS_URL')}, as processes on one port share their events.`,
    );
  }
  for (const [name, problem] of serviceProblems(values)) problems.set(name, problem);
  for (const [name, problem] of tlsProblems(values, read)) problems.set(name, problem);
  return problems;
}

/** Returns what is wrong with the files of TLS to Redis. */
function tlsProblems(
  values: Readonly<Record<string, string | undefined>>,
  read: Variables | undefined,
): ReadonlyMap<keyof Variables, string> {
  const problems = new Map<keyof Variables, string>();
  if ((values['REDIS_TLS_CERT'] === undefined) !== (values['REDIS_TLS_KEY'] === undefined)) {
    problems.set(
      'REDIS_TLS_KEY',
      'REDIS_TLS_CERT, REDIS_TLS_KEY: one is set without the other; wants a certificate and its key, or neither.',
    );
  }
  const files = ['REDIS_TLS_CA', 'REDIS_TLS_CERT', 'REDIS_TLS_KEY'].filter(
    (name) => values[name] !== undefined,
  );
  if (files.length > 0 && !values['REDIS_URL']?.startsWith('rediss')) {
    problems.set(
      'REDIS_TLS_CA',
      `${files.join(', ')}: set, and REDIS_URL uses no TLS; wants a REDIS_URL of the form rediss….`,
    );
  }
  const { REDIS_TLS_CERT: cert, REDIS_TLS_KEY: key } = read ?? {};
  if (cert !== undefined && key !== undefined && !isPair(cert, key)) {
    problems.set(
      'REDIS_TLS_KEY',
      'REDIS_TLS_CERT, REDIS_TLS_KEY: the key is not that of the first certificate; wants a certificate and its own key.',
    );
  }
  return problems;
}

/** Whether the key in one file is that of the first certificate in another. Both have been read before. */
const isPair = (cert: string, key: string): boolean =>
  new X509Certificate(readFileSync(cert)).checkPrivateKey(createPrivateKey(readFileSync(key)));

/** Returns what is wrong with the variables that only `AUTH_MODE=service` has. */
function serviceProblems(
  values: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<keyof Variables, string> {
  const problems = new Map<keyof Variables, string>();
  if (values['AUTH_MODE'] !== 'service') {
    if (values['RECONCILE_EVERY'] === undefined) return problems;
    return problems.set(
      'RECONCILE_EVERY',
      'RECONCILE_EVERY: is set, and AUTH_MODE is passthrough; wants AUTH_MODE=service, as the gateway reads balances under credentials of its own. `pasarela reconcile` compares them under a token.',
    );
  }
  const needed = values['UPSTREAM_CLIENTS'] === undefined ? NEEDED_BY_ONE : NEEDED_BY_SEVERAL;
  for (const name of needed.filter((name) => values[name] === undefined)) {
    problems.set(name, `${name}: is not set, and AUTH_MODE is service; wants ${wants(name)}.`);
  }
  const single = ['UPSTREAM_API_KEY', 'UPSTREAM_CLIENT_SECRET'].filter((name) => values[name] !== undefined);
  if (values['UPSTREAM_CLIENTS'] !== undefined && single.length > 0) {
    problems.set(
      'UPSTREAM_CLIENTS',
      `UPSTREAM_CLIENTS: set, and ${single.join(', ')} too; wants the credentials of all clients in the file.`,
    );
  }
  if (values['UPSTREAM_CLIENTS'] === undefined && values['AUTH_CLIENT_CLAIM'] !== undefined) {
    problems.set(
      'UPSTREAM_CLIENTS',
      `UPSTREAM_CLIENTS: is not set, and AUTH_CLIENT_CLAIM is; wants ${wants('UPSTREAM_CLIENTS')}, also for one client. By UPSTREAM_CLIENT_ID alone a token of any client would act for that one.`,
    );
  }
  if ((values['AUTH_JWKS_URL'] === undefined) === (values['AUTH_JWT_SECRET'] === undefined)) {
    const both = values['AUTH_JWKS_URL'] !== undefined;
    problems.set(
      'AUTH_JWKS_URL',
      `AUTH_JWKS_URL, AUTH_JWT_SECRET: ${both ? 'both are set' : 'neither is set, and AUTH_MODE is service'}; wants one: ${wants('AUTH_JWKS_URL')}, or ${wants('AUTH_JWT_SECRET')}.`,
    );
  }
  return problems;
}
