import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isGap, type Store } from '../../packages/client/src/index.ts';
import { followBy, type Numbered } from './bindings.ts';

/** An app as a process of its own that can be killed: follows by each binding, and keeps what comes in a file for each. */
export interface AppOptions {
  readonly sandbox: string;
  /** A module whose default export is the subscription in relay-compiler's form. */
  readonly compiled: string;
  readonly follows: readonly { readonly name: string; readonly url: string; readonly file: string }[];
}

/** A line of a file: an event, a gap, or where the feed began. */
export interface Line {
  readonly id?: string;
  readonly gap?: string;
  readonly cursor: string;
}

/** Where the app is to end itself. */
export interface Death {
  readonly name: string;
  readonly step: 'before save' | 'after save';
}

/** What the app is told over its standard input: how to die, or that the network is back. */
export type Told = Death | 'online';

const options = JSON.parse(process.argv[2] ?? '') as AppOptions;
const { default: compiled } = (await import(options.compiled)) as { default: object };
let death: Death | undefined;
// A browser's window, as far as the package listens to it.
const window = new EventTarget();
Object.assign(globalThis, {
  addEventListener: window.addEventListener.bind(window),
  removeEventListener: window.removeEventListener.bind(window),
});
createInterface(process.stdin).on('line', (line) => {
  const told = JSON.parse(line) as Told;
  if (told === 'online') window.dispatchEvent(new Event(told));
  else death = told;
});

async function token(): Promise<string> {
  const response = await fetch(`${options.sandbox}/sandbox`);
  const { accessToken } = (await response.json()) as { accessToken: string };
  return accessToken;
}

function fileStore(name: string, file: string): Store<Numbered> {
  const dieAt = (step: Death['step']) => {
    if (death?.name === name && death.step === step) process.kill(process.pid, 'SIGKILL');
  };
  return {
    load() {
      const last = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').at(-1) : undefined;
      // Written below.
      return last ? { cursor: (JSON.parse(last) as Line).cursor } : undefined;
    },
    save(item, cursor) {
      dieAt('before save');
      const line: Line =
        item === undefined
          ? { cursor }
          : isGap(item)
            ? { gap: item.reason, cursor }
            : { id: item.id, cursor };
      appendFileSync(file, `${JSON.stringify(line)}\n`);
      dieAt('after save');
    },
  };
}

for (const { name, url, file } of options.follows) {
  let last = '';
  followBy(name, {
    url,
    token,
    compiled,
    store: fileStore(name, file),
    report({ status, problem }) {
      const cause = status === 'offline' && problem !== undefined ? reasonOf(problem) : undefined;
      if (`${status} ${cause}` === last) return;
      last = `${status} ${cause}`;
      process.stdout.write(`${JSON.stringify({ name, status, at: Date.now(), cause })}\n`);
    },
  });
}

/** A short name of what broke a connection. */
function reasonOf(problem: unknown): string {
  const { code, message } = problem as { code?: unknown; message?: unknown };
  return String(code ?? message ?? problem);
}
