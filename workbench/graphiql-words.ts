import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runInNewContext } from 'node:vm';
import type { Plugin } from 'vite';
import { CHANGES, changed } from './graphiql-texts.ts';

const WORDS = fileURLToPath(new URL('src/words.ts', import.meta.url));
const EDITOR = new URL('node_modules/monaco-editor/dev/vs/', import.meta.url);
const MODULES = '/node_modules/';

/** The name by which the page asks for the editor's Spanish. */
const EDITOR_SPANISH = 'virtual:editor-spanish';

/** So many texts the editor has at least. */
const FEWEST = 900;

/** A text with its number. */
const TEXT = /\blocalize2?\((\d+), ?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`$]*`)/g;

/** The modules that this build has met. */
const found = new Set<string>();

/** Has GraphiQL and its editor speak the page's language. */
export const graphiqlWords: Plugin = {
  name: 'graphiql-words',
  enforce: 'pre',
  buildStart() {
    found.clear();
  },
  resolveId: (id) => (id === EDITOR_SPANISH ? `\0${id}` : null),
  async load(id) {
    return id === `\0${EDITOR_SPANISH}` ? `export default ${JSON.stringify(await editorSpanish())};` : null;
  },
  transform: {
    filter: { id: /\/node_modules\// },
    handler(source, id) {
      const file = id.slice(id.lastIndexOf(MODULES) + MODULES.length);
      const changes = CHANGES[file];
      if (changes === undefined) return null;
      found.add(file);
      return { code: changed(source, changes, WORDS), map: null };
    },
  },
  buildEnd(error) {
    const missing = Object.keys(CHANGES).filter((file) => !found.has(file));
    if (error === undefined && missing.length > 0) {
      this.error(`The page no longer has ${missing.join(', ')}: see workbench/graphiql-texts.ts.`);
    }
  },
};

/**
 * The editor's texts in its maker's translation, by the English. The maker numbers them, in its other build, which is beside the one
 * that the page is made of.
 */
async function editorSpanish(): Promise<Readonly<Record<string, string>>> {
  const [program = '', translation = ''] = await Promise.all(
    ['editor/editor.main.js', 'nls.messages.es.js'].map((file) => readFile(new URL(file, EDITOR), 'utf8')),
  );
  const context: { define: (needs: unknown, run: () => void) => void; _VSCODE_NLS_MESSAGES?: unknown } = {
    define: (_needs, run) => run(),
  };
  runInNewContext(translation, context);
  const spanish = context._VSCODE_NLS_MESSAGES;
  const calls = [...program.matchAll(TEXT)];
  const english: unknown = runInNewContext(`[${calls.map(([, , literal]) => literal).join()}]`);
  if (!Array.isArray(spanish) || !Array.isArray(english))
    throw new Error('The editor has no Spanish any more.');
  const words = Object.fromEntries(
    calls
      .map(([, number], index) => [String(english[index]), spanish[Number(number)]] as const)
      .filter(([key, text]) => typeof text === 'string' && text !== key),
  );
  const count = Object.keys(words).length;
  if (count < FEWEST) throw new Error(`The editor has ${count} texts in Spanish, where it had ${FEWEST}.`);
  return words;
}
