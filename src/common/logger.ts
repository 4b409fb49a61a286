/** What a log call needs: fields, then a message. pino's loggers fit. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Drops every line. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
