import { isLoopback } from '../common/loopback.ts';
import { Secret } from '../common/secret.ts';
import { environmentOfProcess } from './config.ts';
import { misspellingsIn } from './misspellings.ts';
import type { Variables } from './variables.ts';

/** The least length of an HMAC key, in bytes: that of the hash (RFC 2104, 3; RFC 7518, 3.2). */
const HMAC_KEY_BYTES = 32;

/** Returns weaknesses of a valid configuration, as sentences for the operator. They repeat no secret. */
export function weaknessesOf(read: Variables): readonly string[] {
  const keys: readonly (readonly [name: string, seen: string, keys: readonly Secret[]])[] = [
    ['WEBHOOK_SECRET', 'address of the ingress', read.WEBHOOK_SECRET ?? []],
    ['AUTH_JWT_SECRET', 'token', read.AUTH_JWT_SECRET === undefined ? [] : [read.AUTH_JWT_SECRET]],
    ['FORWARD_SECRET', 'forwarded event', read.FORWARD_SECRET === undefined ? [] : [read.FORWARD_SECRET]],
  ];
  return keys
    .filter(([, , secrets]) => secrets.some((secret) => Buffer.byteLength(secret.reveal()) < HMAC_KEY_BYTES))
    .map(
      ([name, seen]) =>
        `${name} is shorter than ${HMAC_KEY_BYTES} bytes: who has seen one ${seen} can try secrets until one fits, and then make others.`,
    );
}

/** What an editor, a file of variables or a Kubernetes Secret made of a file leaves around a value. */
const AROUND = /^\s|\s$|^(["'])[^"']*\1$/;

/** Returns the texts that a variable's value consists of. */
const textsIn = (value: unknown): readonly string[] => {
  if (value instanceof Secret) return [value.reveal()];
  if (typeof value === 'string') return [value];
  return Object.values(Object(value)).flatMap(textsIn);
};

/** The variables that `AUTH_MODE=service` alone reads. The others of it have defaults, so that it is not known whether they are set. */
const OF_SERVICE_MODE = [
  ...(['UPSTREAM_API_KEY', 'UPSTREAM_CLIENT_ID', 'UPSTREAM_CLIENT_SECRET', 'UPSTREAM_CLIENTS'] as const),
  ...(['AUTH_CLIENT_CLAIM', 'AUTH_JWKS_URL', 'AUTH_JWT_SECRET', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const),
];

const ENCRYPT = 'Use https, unless something else encrypts that way, such as a service mesh.';

/** A valid setting that is probably not meant, and what to do about it. */
export interface Doubt {
  readonly text: string;
  readonly cure: string;
}

/**
 * Returns settings that are valid each, but do harm together or in the place where the gateway runs. They repeat no secret.
 */
export function doubtsOf(read: Variables): readonly Doubt[] {
  const { OPERATION_TIMEOUT_MS: operation, UPSTREAM_TIMEOUT_MS: upstream, SHUTDOWN_GRACE_MS: grace } = read;
  const { PUBLIC_URL: url, UPSTREAM_URL: service } = read;
  const doubts: Doubt[] = [];
  const around = Object.entries(read).filter(([, value]) => textsIn(value).some((text) => AROUND.test(text)));
  for (const [name] of around) {
    doubts.push({
      text: `${name} begins or ends with a space or a line break, or stands in quotation marks, which is probably not meant.`,
      cure: 'Take them out, unless they belong to the value. `docker run --env-file` keeps quotation marks, and a Kubernetes Secret that is made of a file keeps the line break at its end.',
    });
  }
  const unread = OF_SERVICE_MODE.filter((name) => read[name] !== undefined);
  if (read.AUTH_MODE !== 'service' && unread.length > 0) {
    doubts.push({
      text: `AUTH_MODE is passthrough, and these are set, which it does not read: ${unread.join(', ')}. Whatever token a caller brings goes to the REST service.`,
      cure: 'Set AUTH_MODE=service, or take them out. Where the gateway has made payments, read docs/operations.md first, "Whose a key is".',
    });
  }
  if (operation <= 2 * upstream) {
    const harm =
      operation <= upstream
        ? 'an operation ends before a REST call that hangs. A service that hangs is never suspended, and no payment without an answer is repeated.'
        : 'money out whose answer does not come is repeated with less time than a REST call may take, so that it may end unknown where one more answer would have settled it.';
    doubts.push({
      text: `OPERATION_TIMEOUT_MS is ${operation}, and UPSTREAM_TIMEOUT_MS ${upstream}: ${harm}`,
      cure: 'Set OPERATION_TIMEOUT_MS to more than twice UPSTREAM_TIMEOUT_MS.',
    });
  }
  if (grace < operation) {
    doubts.push({
      text: `SHUTDOWN_GRACE_MS is ${grace}, and OPERATION_TIMEOUT_MS ${operation}: a payment may need longer than the grace of a process that is told to end. Killed before that, it leaves the payment unknown.`,
      cure: 'Set SHUTDOWN_GRACE_MS to OPERATION_TIMEOUT_MS or more, and leave the process that time.',
    });
  }
  if (read.LAYERS_OFF.length > 0) {
    doubts.push({
      text: `LAYERS_OFF leaves out ${read.LAYERS_OFF.join(', ')}: answers cost more, and without admission or turns one caller may hold up the others.`,
      cure: 'Unset LAYERS_OFF and start the gateway again once the fault is found.',
    });
  }
  const isOpen = (address: string | undefined): boolean =>
    address !== undefined && /^http:/i.test(address) && !isLoopback(new URL(address).hostname);
  if (isOpen(url) && service !== undefined) {
    doubts.push({
      text: 'PUBLIC_URL is http: webhooks, and the secrets in their addresses, can be read on their way.',
      cure: 'Have a proxy serve it over https.',
    });
  }
  if (isOpen(service)) {
    doubts.push({
      text: 'UPSTREAM_URL is http: tokens, API keys and payments can be read on their way, and changed.',
      cure: ENCRYPT,
    });
  }
  if (isOpen(read.AUTH_JWKS_URL)) {
    doubts.push({
      text: 'AUTH_JWKS_URL is http: who can answer in the place of the identity provider can be every caller.',
      cure: ENCRYPT,
    });
  }
  return doubts;
}

/** Returns the misspellings in the environment of this process. */
export const readMisspellings = (): readonly string[] => misspellingsIn(environmentOfProcess());
