import { type DestinationStream, type Logger, pino } from 'pino';
import { redact } from './redact.ts';
import { standardOutput } from './standard-output.ts';

/** Names of fields that are never written, at the top of a line or one level below. */
const SECRET_FIELDS = [
  ...['authorization', 'x-api-key', 'cookie', 'set-cookie', 'token', 'secret', 'password'],
  ...['apiKey', 'clientSecret', 'client_secret', 'cardNumber', 'card_number', 'clabe', 'clabeNumber', 'rfc'],
  ...['holderName', 'holder_name', 'payload', 'variables', 'command'],
];

const MAX_CAUSES = 4;
/** A message may repeat what a stranger sent, and a stack begins with its message. In UTF-16 code units. */
const MAX_TEXT = 4_000;

const cut = (text: string | undefined): string | undefined => text?.slice(0, MAX_TEXT).toWellFormed();

/** What of an error is written: its own words and where it came from, and none of what libraries hang on it. */
function plainError(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) return { message: typeof error };
  const { name, message, stack, cause } = error;
  const code: unknown = Reflect.get(error, 'code');
  return {
    type: name,
    message: cut(message),
    stack: cut(stack),
    ...(typeof code === 'string' ? { code } : {}),
    ...(cause instanceof Error && depth < MAX_CAUSES ? { cause: plainError(cause, depth + 1) } : {}),
  };
}

/** A text in a line of JSON, or a number that is long enough for a card or an account. */
const TEXT_OR_LONG_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"?|(?<=[:,[])\d{12,18}(?=[,}\]])/g;
/** A line that cannot be redacted as it stands: a number has to become a text, and the letter of an escape would count as part of a word. */
const IS_ESCAPED_OR_LONG = /\\|\d{12}/;

/** Hides what no line may hold. The line stays JSON. */
function hidden(line: string): string {
  if (!IS_ESCAPED_OR_LONG.test(line)) return redact(line);
  return line.replace(TEXT_OR_LONG_NUMBER, (part) => {
    if (!part.startsWith('"')) return '"[hidden]"';
    return part.includes('\\') ? JSON.stringify(redact(JSON.parse(part))) : redact(part);
  });
}

/**
 * The process' own log: JSON lines. Secrets do not print by themselves (secret.ts), fields that hold some are not
 * written, errors are cut down to their own words, and every line passes {@link redact} on its way out.
 *
 * @param level a pino level.
 * @param destination standard output unless a test gives another.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error) => plainError(error), error: (value) => textOrError(value) },
      redact: {
        paths: SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]),
        censor: '[secret]',
      },
      hooks: { streamWrite: hidden },
    },
    destination ?? standardOutput(),
  );
}

const textOrError = (value: unknown): unknown => (value instanceof Error ? plainError(value) : value);
