/** Without what is undefined, which would take the place of the defaults that options are spread over. */
export const given = <T extends object>(options: T): T =>
  // Only entries are gone whose value the type does not have: optional ones.
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
