import { setMaxListeners } from 'node:events';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isGap, type Store } from '../../packages/client/src/index.ts';
import { BINDINGS, followBy, type Numbered, type Reported } from './bindings.ts';
import type { Compiled } from './compiled.ts';
import { startPhone } from './phone.ts';
import { runUnread } from './unread.ts';

/** An app as a process of its own that can be killed: follows by each program, and keeps what comes in a file for each. */
export interface AppOptions {
  readonly sandbox: string;
  /** Modules whose default exports are the subscriptions in relay-compiler's form. */
  readonly compiled: Compiled;
  readonly follows: readonly { readonly name: string; readonly url: string; readonly file: string }[];
}

/** A line of a file: an event, a gap, or where the feed began. */
export interface Line {
  /** It began without knowing of an earlier start. */
  readonly isFresh?: true;
  readonly id?: string;
  readonly gap?: string;
  readonly cursor: string;
}

/** Where the app is to end itself. */
export interface Death {
  readonly name: string;
  readonly step: 'before save' | 'after save';
}

/** What the app is told over its standard input: how to die, that the network is back, or what the phone does with it. */
export type Told = Death | 'online' | 'background' | 'active';

const options = JSON.parse(process.argv[2] ?? '') as AppOptions;
const [documented, unread] = await Promise.all(
  [options.compiled.documented, options.compiled.unread].map(async (module) => {
    const { default: compiled } = (await import(module)) as { default: object };
    return compiled;
  }),
);
const phone = startPhone();
let death: Death | undefined;
// A browser's window, as far as the package listens to it.
const window = new EventTarget();
setMaxListeners(0, window);
Object.assign(globalThis, {
  addEventListener: window.addEventListener.bind(window),
  removeEventListener: window.removeEventListener.bind(window),
});
createInterface(process.stdin).on('line', (line) => {
  const told = JSON.parse(line) as Told;
  if (typeof told === 'object') death = told;
  else if (told !== 'online') phone.becomes(told);
  else {
    window.dispatchEvent(new Event(told));
    phone.connected();
  }
});

async function token(): Promise<string> {
  const response = await fetch(`${options.sandbox}/sandbox`);
  const { accessToken } = (await response.json()) as { accessToken: string };
  return accessToken;
}

/** Writes a line, unless it is to die before. */
function keep(name: string, file: string, line: Line): void {
  const dieAt = (step: Death['step']) => {
    if (death?.name === name && death.step === step) process.kill(process.pid, 'SIGKILL');
  };
  dieAt('before save');
  appendFileSync(file, `${JSON.stringify(line)}\n`);
  dieAt('after save');
}

function fileStore(name: string, file: string): Store<Numbered> {
  return {
    load() {
      const last = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').at(-1) : undefined;
      // Written below.
      return last ? { cursor: (JSON.parse(last) as Line).cursor } : undefined;
    },
    save(item, cursor) {
      const line: Line =
        item === undefined
          ? { cursor }
          : isGap(item)
            ? { gap: item.reason, cursor }
            : { id: item.id, cursor };
      keep(name, file, line);
    },
  };
}

for (const { name, url, file } of options.follows) {
  const report = reporter(name);
  if (BINDINGS.includes(name)) {
    followBy(name, { url, token, phone, compiled: documented ?? {}, store: fileStore(name, file), report });
    continue;
  }
  keep(name, file, { isFresh: true, cursor: '' });
  runUnread(name, {
    url,
    token,
    report,
    compiled: unread ?? {},
    shows: (id) => keep(name, file, { id, cursor: '' }),
    isToldOfGap: (gap) => keep(name, file, { gap, cursor: '' }),
  });
}

function reporter(name: string) {
  let last = '';
  return ({ status, problem }: Reported): void => {
    const cause = status === 'offline' && problem !== undefined ? reasonOf(problem) : undefined;
    if (`${status} ${cause}` === last) return;
    last = `${status} ${cause}`;
    process.stdout.write(`${JSON.stringify({ name, status, at: Date.now(), cause })}\n`);
  };
}

/** A short name of what broke a connection. */
function reasonOf(problem: unknown): string {
  const { code, message } = problem as { code?: unknown; message?: unknown };
  return String(code ?? message ?? problem);
}
