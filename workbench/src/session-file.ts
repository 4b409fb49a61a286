import { create } from 'zustand';
import { withoutCredentials } from './credentials.ts';
import { streamsOf } from './kept-streams.ts';
import type { Answer } from './net/execute.ts';
import type { Stream } from './stream-store.ts';

/** One operation with what came of it. Headers and credentials are never part of what is handed over. */
export interface KeptTab {
  readonly title: string;
  readonly query: string;
  readonly variables: string;
  readonly answer: Answer | undefined;
  readonly stream: Stream | undefined;
  /** Whether its variables and what came of it were left out, as they may hold a credential. */
  readonly isCut?: boolean;
}

export interface KeptSession {
  readonly at: Date;
  readonly tabs: readonly KeptTab[];
}

const FORMAT = 'pasarela-session-1';
/** Browsers and chats take no longer addresses than this. */
const LONGEST_LINK = 60_000;
const LINK = '#session=';

/** The session that is looked at in the place of one's own. */
export const useShown = create<{ readonly session: KeptSession | undefined }>(() => ({ session: undefined }));

export const showSession = (session: KeptSession | undefined): void => useShown.setState({ session });

export const writeSession = (tabs: readonly KeptTab[]): string =>
  JSON.stringify({ format: FORMAT, at: new Date(), tabs: tabs.map(withoutCredentials) });

/** @throws Error for a text that is no session. */
export function readSession(text: string): KeptSession {
  const { format, at, tabs } = JSON.parse(text) as { format?: unknown; at: string; tabs: KeptTab[] };
  if (format !== FORMAT || !Array.isArray(tabs)) throw new Error('This is no session.');
  return {
    at: new Date(at),
    tabs: tabs.map((tab) => ({
      ...tab,
      stream: tab.stream === undefined ? undefined : revived(tab.stream),
    })),
  };
}

const revived = (stream: Stream): Stream | undefined =>
  streamsOf({ one: { ...stream, status: 'ended', entries: [...stream.entries] } })['one'];

const through = async (bytes: BlobPart, stream: ReadableWritablePair): Promise<ArrayBuffer> =>
  new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

/** A link that holds the session behind its `#`, so that no server sees it; undefined where it would be too long. */
export async function sessionLink(tabs: readonly KeptTab[]): Promise<string | undefined> {
  const packed = new Uint8Array(await through(writeSession(tabs), new CompressionStream('deflate-raw')));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
  return text.length > LONGEST_LINK ? undefined : location.href.replace(/#.*$/, '') + LINK + text;
}

/** The session that the page was opened with. */
export async function linkedSession(): Promise<KeptSession | undefined> {
  if (!location.hash.startsWith(LINK)) return undefined;
  const text = atob(location.hash.slice(LINK.length).replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const plain = await through(bytes, new DecompressionStream('deflate-raw'));
  return readSession(new TextDecoder().decode(plain));
}
