import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What becomes of an answer of the service; undefined leaves it as it is. */
type Alter = (
  call: { readonly method: string; readonly path: string },
  answer: { readonly status: number; readonly body: unknown },
) => { readonly status?: number; readonly body?: unknown } | undefined;

export interface AlteredService extends AsyncDisposable {
  readonly url: string;
  /** What becomes of the answers from here on. */
  alter: Alter;
}

/** A service that passes everything on to another one, and alters its answers as a test says. */
export async function startAltered(behind: string): Promise<AlteredService> {
  const server = createServer(async (request, response) => {
    const { method = 'GET', url: path = '' } = request;
    const body = await bytesOf(request);
    const headers = Object.entries(request.headers).filter(
      (header): header is [string, string] =>
        typeof header[1] === 'string' && !['host', 'connection', 'content-length'].includes(header[0]),
    );
    const answer = await fetch(`${behind}${path}`, {
      method,
      headers,
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    }).catch(() => undefined);
    if (answer === undefined) {
      // The service has cut the call off; so does this one.
      response.destroy();
      return;
    }
    const text = await answer.text();
    const parsed: unknown = text === '' ? undefined : JSON.parse(text);
    const altered = service.alter({ method, path }, { status: answer.status, body: parsed });
    const sent = altered !== undefined && 'body' in altered ? altered.body : parsed;
    response
      .writeHead(altered?.status ?? answer.status, { 'content-type': 'application/json' })
      .end(sent === undefined ? '' : JSON.stringify(sent));
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const service: AlteredService = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    alter: () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Where something stands in a JSON value: names of members and places of items, outermost first. */
export type Place = readonly (string | number)[];

/** Every place in a value but its root. */
export function placesIn(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const members: (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  return members.flatMap(([name, member]) => [[...at, name], ...placesIn(member, [...at, name])]);
}

/** Names that mean something else to who takes the object for more than data. */
const ODD_NAMES: Readonly<Record<string, number>> = JSON.parse('{"toString":1,"valueOf":2,"then":3}');

/** What can be odd in one place of an answer. */
export const ODDITIES = [
  'dropped',
  null,
  '',
  'None',
  'odd',
  '1.555',
  -7,
  7,
  1.5,
  true,
  false,
  {},
  [],
  ['odd'],
  ODD_NAMES,
  { odd: { deep: [null] } },
] as const;

export type Oddity = (typeof ODDITIES)[number];

/** A copy of a value with one place changed; the root where the place is empty. */
export function altered(value: unknown, [name, ...rest]: Place, oddity: Oddity): unknown {
  if (name === undefined) return oddity === 'dropped' ? undefined : oddity;
  if (Array.isArray(value)) {
    if (rest.length === 0 && oddity === 'dropped') return value.filter((_, index) => index !== name);
    return value.map((item, index) => (index === name ? altered(item, rest, oddity) : item));
  }
  const members = Object.entries(value as object).map(
    ([key, member]) => [key, key === name ? altered(member, rest, oddity) : member] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}
