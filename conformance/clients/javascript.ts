// @pasarela/client, as the suite tries it.
import { readFile, rename, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import {
  finish,
  follow,
  intentStore,
  isGap,
  memoryStore,
  pay,
  Refused,
  typed,
} from '../../packages/client/src/index.ts';

interface Command {
  readonly do: 'follow' | 'pay';
  readonly url: string;
  readonly transport: 'sse' | 'websocket';
  readonly query: string;
  readonly saved?: string;
  readonly store: string;
  readonly tokens: readonly string[];
  readonly input?: Readonly<Record<string, string>>;
}

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const lines = createInterface(process.stdin)[Symbol.asyncIterator]();
// The suite writes one line.
const command = JSON.parse((await lines.next()).value ?? '') as Command;
const { url, query, saved, input = {} } = command;

const tokens = [...command.tokens];
const options = {
  url,
  token: ({ refused }: { readonly refused: boolean }) => {
    if (refused && tokens.length > 1) tokens.shift();
    return tokens[0] ?? '';
  },
};
const socket = command.transport === 'websocket' ? createSocket(options) : undefined;
const source = socket ?? createFetch(options);

async function followed(): Promise<void> {
  const document = typed<{ readonly moneyIn: { readonly cursor: string } }, { readonly after?: string }>(
    query,
  );
  const store = memoryStore<{ readonly cursor: string }>();
  if (saved !== undefined) await store.save(undefined, saved);
  const feed = follow(source, document, { store });
  let before = feed.status;
  let isOver = false;
  feed.onChange(() => {
    const { code } = Object(feed.problem) as { readonly code?: unknown };
    // The feed comes back, as a proxy may have answered so for a while. This app takes another address for a defect.
    if (!isOver && Number(code) >= 400 && Number(code) < 500 && code !== 408 && code !== 429) {
      isOver = true;
      say({ refused: String(code) });
      void feed.close();
    }
    if (feed.status === 'live' && before !== 'live') say({ live: true });
    before = feed.status;
  });
  for await (const item of feed) say(isGap(item) ? { gap: item.reason } : { event: item.cursor });
}

/** As `localStorage`, in the file of the case. */
const storage = {
  getItem: () => readFile(command.store, 'utf8').catch(() => null),
  async setItem(_key: string, text: string) {
    await writeFile(`${command.store}.new`, text);
    await rename(`${command.store}.new`, command.store);
  },
};

async function paid(): Promise<void> {
  const document = typed<
    { readonly createMoneyOut: { readonly __typename: string } },
    { readonly input: { readonly idempotencyKey: string } }
  >(query);
  const store = intentStore(storage, 'payments');
  // A start is no press: `pay` would make another payment after a refusal.
  const [kept] = await store.load();
  // It has moved nothing, and waits for a press: `unsettled` does not list it.
  if (kept && kept.result === undefined && kept.unanswered === 0) return void say({ ready: true });
  const outcome = await (kept
    ? finish(source, document, kept, { store })
    : pay(source, document, input, { store }));
  if (outcome.status === 'done') say({ done: true });
  else if (outcome.status === 'refused') say({ refused: outcome.code });
  else say({ unknown: true });
}

try {
  await (command.do === 'follow' ? followed() : paid());
} catch (cause) {
  if (!(cause instanceof Refused)) throw cause;
  say({ refused: cause.code });
}
socket?.close();
