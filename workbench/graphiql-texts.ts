// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are pieces of GraphiQL’s code, some of which are templates.
/** What one module of GraphiQL has, what the page has in its place, and the English that is translated there. */
interface Change {
  readonly found: string;
  readonly written: string;
  readonly texts: readonly string[];
}

/** The page's `t`, under a name that no module of GraphiQL has. */
const T = 'pasarelaText';

/** @param values the code of an object */
const call = (text: string, values?: string): string =>
  `${T}(${JSON.stringify(text)}${values === undefined ? '' : `, ${values}`})`;

const code = (found: string, written: string): Change => ({ found, written, texts: [] });
const kept = (found: string): Change => code(found, found);
const said = (text: string): Change => ({ found: `"${text}"`, written: call(text), texts: [text] });
/** The explorer writes its texts in single quotes. */
const quoted = (text: string): Change => ({ found: `'${text}'`, written: call(text), texts: [text] });
/** A text that something is filled into. */
const filled = (found: string, text: string, values: string): Change => ({
  found,
  written: call(text, values),
  texts: [text],
});
const either = (
  found: string,
  condition: string,
  texts: readonly [string, string],
  values: string,
): Change => ({
  found,
  written: `(${condition} ? ${call(texts[0], values)} : ${call(texts[1], values)})`,
  texts,
});
/** A button of the explorer that shows a sign and has no name. */
const named = (indent: number, pressed: string, text: string): Change => {
  const found = `onClick: function onClick() {\n${' '.repeat(indent)}${pressed}`;
  return { found, written: `title: ${call(text)}, 'aria-label': ${call(text)}, ${found}`, texts: [text] };
};

/** A sign of the explorer's that fonts may lack, drawn. */
const drawn = (found: string, path: string): Change => {
  const properties =
    "{ viewBox: '0 0 24 24', width: 14, height: 14, fill: 'none', stroke: 'currentColor', strokeWidth: 2, 'aria-hidden': true }";
  const line = `React.createElement('path', { d: '${path}' })`;
  return { found, written: `React.createElement('svg', ${properties}, ${line})`, texts: [] };
};

const DOCS = '@graphiql/plugin-doc-explorer/dist';
const REACT = '@graphiql/react/dist';

/** Titles of the documentation's sections: they choose an icon too, so they are translated where they are shown. */
const SECTIONS = [
  'Arguments',
  'Deprecated Arguments',
  'Deprecated Enum Values',
  'Deprecated Fields',
  'Directives',
  'Enum Values',
  'Fields',
  'Implements',
  'Implementations',
  'Possible Types',
  'Root Types',
  'Type',
  'All Schema Types',
];

/**
 * GraphiQL has its texts in English alone. These are the places where the page's own function takes them over, by the module's path
 * beneath `node_modules`. The build fails where one of them is not found: a new version of GraphiQL says so by that.
 */
export const CHANGES: Readonly<Record<string, readonly Change[]>> = {
  [`${DOCS}/context.js`]: [
    said('Docs'),
    // Its keys look for the button that opens the pane, which is GraphiQL's own where the page has another.
    code(
      '.graphiql-sidebar button[aria-label="Show Documentation Explorer"]',
      '.wb-rail button[data-pane="Documentation Explorer"][aria-pressed="false"]',
    ),
  ],
  [`${DOCS}/components/argument.js`]: [said('Deprecated')],
  [`${DOCS}/components/deprecation-reason.js`]: [said('Deprecated')],
  [`${DOCS}/components/doc-explorer.js`]: [
    said('Error fetching schema'),
    said('Schema is invalid: '),
    said('No GraphQL schema available'),
    said('Documentation Explorer'),
    filled('`Go back to ${prevName}`', 'Go back to {name}', '{ name: prevName }'),
  ],
  [`${DOCS}/components/field-documentation.js`]: [said('Show Deprecated Arguments')],
  [`${DOCS}/components/schema-documentation.js`]: [
    said('A GraphQL schema provides a root type for each kind of operation.'),
  ],
  [`${DOCS}/components/search.js`]: [
    filled('`Search ${navItem.name}...`', 'Search {name}...', '{ name: navItem.name }'),
    said('No results found'),
    said('Other results'),
    // An open list of what was found would make the rest of the page dead to the first press.
    code('"data-cy": "doc-explorer-list",', 'modal: false, "data-cy": "doc-explorer-list",'),
  ],
  [`${DOCS}/components/section.js`]: [
    code('    title,\n    children\n  } = t0;', '    title: section,\n    children\n  } = t0;'),
    code(
      'const Icon = TYPE_TO_ICON[title];',
      `const Icon = TYPE_TO_ICON[section];\n  const title = ${T}(section);`,
    ),
    ...SECTIONS.map((title) => kept(title.includes(' ') ? `  "${title}": ` : `  ${title}: `)),
  ],
  [`${DOCS}/components/type-documentation.js`]: [
    said('Show Deprecated Fields'),
    said('Show Deprecated Values'),
  ],
  '@graphiql/plugin-history/dist/components.js': [
    said('History'),
    said('Cleared'),
    said('Failed to Clear'),
    said('Clear'),
    said('Type a label'),
    said('Save'),
    said('Set active'),
    said('Edit label'),
    said('Remove favorite'),
    said('Add favorite'),
    said('Delete from history'),
    // Its name was the title of its icon.
    {
      found: 'onClick: handleClose, children:',
      written: `onClick: handleClose, "aria-label": ${call('Cancel')}, children:`,
      texts: ['Cancel'],
    },
  ],
  'graphiql-explorer/dist/Explorer.js': [
    filled("capitalize(operationType) + ' Name'", '{kind} Name', '{ kind: capitalize(operationType) }'),
    quoted('Remove the variable'),
    quoted('Extract the current value into a GraphQL variable'),
    quoted('Extract selections into a new reusable fragment'),
    quoted('No Schema Available'),
    quoted('Missing query type'),
    quoted('Something went wrong'),
    quoted('Add new'),
    // As the pane opens, the first field of it would take the focus.
    code(
      '!(activeElement instanceof HTMLTextAreaElement)',
      "activeElement.closest('.graphiql-explorer-root') !== null",
    ),
    // They were there for a mouse alone.
    code('!!this.state.displayTitleActions ?', 'true ?'),
    named(18, 'return _this13.props.onOperationDestroy();', 'Remove this operation'),
    named(18, 'return _this13.props.onOperationClone();', 'Copy this operation'),
    drawn("'⎘'", 'M8 8V4h12v12h-4M4 8h12v12H4z'),
    drawn("'\\u2715'", 'M5 5l14 14M19 5 5 19'),
    named(16, 'return _this15.state.newOperationType ?', 'Add new'),
  ],
  [`${REACT}/icons/index.js`]: [
    // A title made of the function's name, which the build shortens to a letter or two: each icon stands beside words, or in a
    // button that has a name.
    code(
      'const title = RawComponent.name.replace("Svg", "").replaceAll(/([A-Z])/g, " $1").trimStart().toLowerCase() + " icon";',
      'const title = undefined;',
    ),
  ],
  [`${REACT}/constants.js`]: [
    said('Prettify Editors'),
    said('Merge Fragments into Query'),
    said('Run Operation'),
    said('Copy Query'),
  ],
  [`${REACT}/components/execute-button/index.js`]: [
    either(
      '`${isRunning ? "Stop" : "Execute"} query (${formatShortcutForOS(KEY_MAP.runQuery.key, "Cmd")})`',
      'isRunning',
      ['Stop query ({key})', 'Execute query ({key})'],
      '{ key: formatShortcutForOS(KEY_MAP.runQuery.key, "Cmd") }',
    ),
    filled('`<Unnamed ${operation.operation}>`', '<Unnamed {kind}>', '{ kind: operation.operation }'),
  ],
  [`${REACT}/components/response-editor.js`]: [
    said('Result Window'),
    {
      found: '>Loading...</div>',
      written: `>\${${call('Loading...')}}</div>`,
      texts: ['Loading...'],
    },
  ],
  [`${REACT}/stores/execution.js`]: [
    said('Automatically added leaf fields'),
    either(
      '`Request not sent. ${editor === variableEditor ? "Variables" : "Request headers"} ${error.message}`',
      'editor === variableEditor',
      ['Request not sent. Variables {why}', 'Request not sent. Request headers {why}'],
      '{ why: error.message }',
    ),
  ],
  [`${REACT}/stores/schema.js`]: [
    filled(
      '`Introspection failed. Request headers ${error instanceof Error ? error.message : error}`',
      'Introspection failed. Request headers {why}',
      '{ why: error instanceof Error ? error.message : String(error) }',
    ),
  ],
  [`${REACT}/utility/jsonc.js`]: [
    code('new Intl.ListFormat("en", {', 'new Intl.ListFormat(document.documentElement.lang, {'),
    said('invalid symbol'),
    said('invalid number format'),
    said('expected a property name'),
    said('expected a value'),
    said('expected a colon'),
    said('expected a comma'),
    said('expected a closing brace'),
    said('expected a closing bracket'),
    said('expected end of file'),
    said('invalid comment token'),
    said('unexpected end of comment'),
    said('unexpected end of string'),
    said('unexpected end of number'),
    said('invalid unicode'),
    said('invalid escape character'),
    said('invalid character'),
    filled(
      '`${PARSE_ERROR_MESSAGES[code] ?? code} at line ${line}, column ${column}`',
      '{error} at line {line}, column {column}',
      '{ error: PARSE_ERROR_MESSAGES[code] ?? code, line, column }',
    ),
    filled(
      '`are invalid JSON: ${error instanceof Error ? error.message : error}.`',
      'are invalid JSON: {errors}.',
      '{ errors: error instanceof Error ? error.message : String(error) }',
    ),
    said('are not a JSON object.'),
  ],
  // The editor's texts are found by numbers in its maker's own translation, and its modules here have none: by the English text.
  'monaco-editor/esm/vs/nls.js': [
    code(
      'function _format(message, args) {',
      'function _format(message, args) {\n    message = getNLSMessages()?.[message] ?? message;',
    ),
  ],
};

/** Every text of GraphiQL that the page translates, with `{name}` where something is filled in. */
export const TEXTS: readonly string[] = [
  ...new Set([
    ...SECTIONS,
    ...Object.values(CHANGES)
      .flat()
      .flatMap(({ texts }) => texts),
  ]),
];

/**
 * A module with its changes, and with the page's function.
 *
 * @param words where the function is defined
 * @throws where something is no longer there that is to be changed
 */
export function changed(source: string, changes: readonly Change[], words: string): string {
  let result = source;
  for (const { found, written } of changes) {
    if (!source.includes(found)) throw new Error(`No ${found} is left: see workbench/graphiql-texts.ts.`);
    result = result.replaceAll(found, () => written);
  }
  if (!result.includes(T)) return result;
  // A module of the older kind would become one of the newer kind by an import, and lose its exports.
  const isCommonJs = source.includes('Object.defineProperty(exports, "__esModule"');
  const path = JSON.stringify(words);
  const taken = isCommonJs ? `var ${T} = require(${path}).t;` : `import { t as ${T} } from ${path};`;
  return `${result}\n${taken}\n`;
}
