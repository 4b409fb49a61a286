/** Whether tests that start programs start those of `dist`, which `npm run build` makes, instead of the sources. */
export const STARTS_DIST = process.env['TEST_ENTRY'] === 'dist';

const BUILT: Readonly<Record<string, readonly string[]>> = {
  'src/start.js': ['dist/lib/pasarela.js', 'serve'],
  'src/cli/pasarela.ts': ['dist/lib/pasarela.js'],
  'src/cli/sandbox.ts': ['dist/lib/pasarela.js', 'sandbox'],
};

/** What `node` is told to run one of the project's programs, named by its source: `src/cli/pasarela.ts`. */
export const programOf = (source: string): readonly string[] =>
  (STARTS_DIST ? BUILT[source] : undefined) ?? [source];
