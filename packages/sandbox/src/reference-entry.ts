/** One request of the reference, with values of the demo client that it can be sent with as they are. */
export interface ReferenceEntry {
  /** Its number in docs/upstream-api.md; null for the sandbox's own control. */
  number: number | null;
  method: string;
  /** With parameters in braces: `/v1/clients/{clientId}/accounts`. */
  path: string;
  summary: { en: string; es: string };
  /** What it is opened by: the access token, the API key, or nothing. */
  auth: 'token' | 'key' | null;
  parameters: Record<string, string>;
  /** Documented query parameters with a value to try; empty ones are left out. */
  query: Record<string, string>;
  body: unknown;
}

/** An entry as it is written: without what follows from its method and path. */
export type Entry = Omit<
  ReferenceEntry,
  'method' | 'path' | 'parameters' | 'query' | 'body' | 'auth' | 'summary'
> & {
  en: string;
  es: string;
  auth?: 'key';
  query?: Record<string, string>;
  body?: unknown;
};
