/** The words of the error at the bottom of a chain of causes, such as SQLite's or the operating system's. */
export function rootReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : rootReason(error.cause);
}
