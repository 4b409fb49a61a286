/**
 * Takes out of a text what no log line and no error may hold (SECURITY.md, "Secrets and
 * people"): tokens, the signatures of ingress addresses, and numbers of cards, accounts and taxpayers. The last gate: what
 * knows what it holds must not write it to begin with.
 */
export function redact(text: string): string {
  return PATTERNS.reduce((clean, [pattern, mask]) => clean.replace(pattern, mask), text);
}

const MASK = '[hidden]';

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // JWTs, whole or cut short, and whatever follows `Bearer`.
  [/\beyJ[\w-]{8,}(?:\.[\w-]*){0,2}/g, MASK],
  [/\bBearer +[\w.~+/=-]{8,}/gi, `Bearer ${MASK}`],
  [/(\/webhooks\/[\w-]{1,64}\/[A-Z_]+\/)[\w-]+/g, `$1${MASK}`],
  // Credentials in an address.
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"]*@/gi, `$1${MASK}@`],
  // Cards have 16 digits, CLABEs 18, account numbers 12. The last part of a UUID may be 12 digits too.
  [/(?<!\d|[0-9a-f]{4}-)\d{12,18}(?!\d)/gi, MASK],
  // RFC: three letters of a company or four of a person, a date, three more.
  [/(?<![\w&Ñ])[A-ZÑ&]{3,4}\d{6}[A-Z0-9]{3}(?!\w)/g, MASK],
];

/** The ends of graphql-js' messages in which it repeats what it was given. */
const REPEATED: readonly (readonly [RegExp, string])[] = [
  [/[,;] found: .*$/s, '.'],
  [/((?:Unexpected|found) (?:String|BlockString|Int|Float)) ".*"\.$/s, '$1.'],
  [/(cannot represent (?:a |an )?[\w -]*?(?:value|integer|string)[\w -]*): .*$/s, '$1.'],
  [/(cannot represent value): .*$/s, '$1.'],
  [
    /^(Variable "\$\w+" has invalid (?:default )?value.*?)Value ".*" does not exist in/s,
    '$1The value does not exist in',
  ],
  [/^Value ".*" does not exist in/s, 'The value does not exist in'],
];

/** A message of graphql-js without the value that it is about: a caller knows what it has sent, and others need not. */
export const withoutValues = (message: string): string =>
  redact(REPEATED.reduce((clean, [pattern, mask]) => clean.replace(pattern, mask), message));
