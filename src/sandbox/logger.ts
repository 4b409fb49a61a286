/** What the sandbox needs of a logger; pino's has this shape. */
export interface Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}

export const silent: Logger = { info: () => undefined, error: () => undefined };
