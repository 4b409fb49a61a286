import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin, type Rolldown } from 'vite';
import { graphiqlWords } from './graphiql-words.ts';

/** Where the files are, from where the page is: at /graphql, or at the same place beneath a proxy's path. */
const FILES = 'graphql/workbench/';

/** The editor is loaded once the page runs, and is needed at once: it comes along with the page. */
const EDITOR = ['monaco-graphql/esm/monaco-editor.js', 'monaco-graphql/esm/lite.js'];

/** The files of the editor: the chunks that it is in, all that they import, and their styles. */
function editorFiles(bundle: Rolldown.OutputBundle): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (name: string): void => {
    const chunk = bundle[name];
    if (chunk?.type !== 'chunk' || found.has(name)) return;
    found.add(name);
    for (const style of chunk.viteMetadata?.importedCss ?? []) found.add(style);
    for (const imported of chunk.imports) add(imported);
  };
  for (const [name, file] of Object.entries(bundle)) {
    if (file.type === 'chunk' && EDITOR.some((end) => file.facadeModuleId?.endsWith(end))) add(name);
  }
  return found;
}

/** Writes the addresses of the page, which is served at another one than its files, and asks for the editor early. */
const servedElsewhere: Plugin = {
  name: 'served-elsewhere',
  enforce: 'post',
  generateBundle(_options, bundle) {
    const page = bundle['index.html'];
    if (page?.type !== 'asset') throw new Error('The build has no index.html.');
    const html = String(page.source).replaceAll('="./', `="${FILES}`);
    const links = [...editorFiles(bundle)]
      .filter((name) => !html.includes(name))
      .map((name) =>
        name.endsWith('.css')
          ? `<link rel="stylesheet" crossorigin href="${FILES}${name}">`
          : `<link rel="modulepreload" crossorigin href="${FILES}${name}">`,
      );
    page.source = html.replace('</head>', `  ${links.join('\n    ')}\n  </head>`);
  },
};

export default defineConfig({
  plugins: [graphiqlWords, react(), servedElsewhere],
  base: './',
  // Flat names, which the gateway can serve without reading paths.
  build: { assetsDir: '', chunkSizeWarningLimit: 3_000, reportCompressedSize: false, target: 'es2023' },
  worker: { format: 'es' },
});
