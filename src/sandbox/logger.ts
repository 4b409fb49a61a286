/** What the sandbox needs of a logger; pino's has this shape. */
export interface Logger {
  error(details: object, message: string): void;
}

export const silent: Logger = { error: () => undefined };
