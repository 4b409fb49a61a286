/**
 * Takes out of a text what no log line and no error may hold (SECURITY.md, "Secrets and
 * people"): tokens, the signatures of ingress addresses, and numbers of cards, accounts and taxpayers. The last gate: what
 * knows what it holds must not write it to begin with.
 *
 * Takes time in proportion to the text's length, as every expression here does (test/scenarios/security/expressions.test.ts).
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
  // Credentials in an address. Without its scheme, which would be looked for from each of its letters on.
  [/:\/\/[^\s/@"]*@/g, `://${MASK}@`],
  // Cards have 16 digits, CLABEs 18, account numbers 12. The last part of a UUID may be 12 digits too.
  [/(?<!\d|[0-9a-f]{4}-)\d{12,18}(?!\d)/gi, MASK],
  // RFC: three letters of a company or four of a person, a date, three more. CURP, which SPEI may have in its place: the same beginning of
  // a person, and its sex, state, consonants and check.
  [/(?<![\w&Ñ])[A-ZÑ&]{3,4}\d{6}(?:[HMX][A-Z]{5}[A-Z0-9]\d|[A-Z0-9]{3})(?!\w)/g, MASK],
];

/** The longest message of an error that a caller is sent, in UTF-16 code units. */
const MAX_MESSAGE = 300;

/** A message that holds a caller's own words, which may be of any length. */
const shortened = (message: string): string =>
  message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE).toWellFormed()}…` : message;

/** A message that may hold a caller's own words, in the form in which an error may carry it. */
export const publicMessage = (message: string): string => redact(shortened(message));

/** A message of graphql-js without the value that it is about: a caller knows what it has sent, and others need not. */
export const withoutValues = (message: string): string =>
  publicMessage(beforeValue(shortened(withoutEnumValue(message))));

const VALUE = 'Value "';
const NO_ENUM_VALUE = '" does not exist in ';

/** `Value "…" does not exist in "Enum" enum.`, alone or behind the name of a variable or an argument. What follows it may suggest one. */
function withoutEnumValue(message: string): string {
  const start = message.indexOf(VALUE);
  const end = message.lastIndexOf(NO_ENUM_VALUE);
  if (start === -1 || end < start + VALUE.length) return message;
  return `${message.slice(0, start)}The value${message.slice(end + 1)}`;
}

/** What stands before a value that ends a message, and is kept where it is in the group. */
const BEFORE_VALUE =
  /[,;] found: |((?:Unexpected|found) (?:String|BlockString|Int|Float)) "|(cannot represent [\w -]{0,60}): /;

function beforeValue(message: string): string {
  const found = BEFORE_VALUE.exec(message);
  if (found === null) return message;
  return `${message.slice(0, found.index)}${found[1] ?? found[2] ?? ''}.`;
}
