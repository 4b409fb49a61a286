import { refused } from './source.ts';

/** Returns the text of a document, in which it is sent. Throws if a compiler has left the text out. */
export function textOf(document: string | object): string {
  const { kind, params } = document as { kind?: string; params?: { text?: string | null } };
  // `Document` is graphql's name for a parsed document.
  if (kind === 'Document') return print(document as Node);
  // relay-compiler keeps the text in its form of the document; the strings of graphql-codegen are String objects.
  const text = params ? params.text : String(document);
  // Of any other object it is `[object Object]`.
  if (!text || text[0] === '[')
    throw refused('No text: set include_query_text (Relay) or embedHashInDocument.');
  return text;
}

/** A node of a parsed document, with the members that are printed. Each kind has some of them. */
interface Node {
  readonly kind: string;
  readonly operation?: string;
  readonly value?: Node | string | boolean;
  readonly block?: boolean;
  readonly description?: Node;
  readonly alias?: Node;
  readonly name?: Node;
  readonly variable?: Node;
  readonly type?: Node;
  readonly typeCondition?: Node;
  readonly defaultValue?: Node;
  readonly selectionSet?: Node;
  readonly definitions?: readonly Node[];
  readonly variableDefinitions?: readonly Node[];
  readonly directives?: readonly Node[];
  readonly arguments?: readonly Node[];
  readonly selections?: readonly Node[];
  readonly values?: readonly Node[];
  readonly fields?: readonly Node[];
}

/** The longest line of a field whose arguments stand on one line, and of a list or an object that does. */
const LINE = 80;
const all = (nodes: readonly Node[] = [], between = ' '): string => nodes.map(print).join(between);
const around = (before: string, text: string, after = ''): string =>
  text === '' ? '' : before + text + after;
const indented = (text: string): string => text.replaceAll('\n', '\n  ');

/** Nodes on one line, or, where that is too long, each on its own. */
function among(before: string, nodes: readonly Node[] | undefined, after: string): string {
  const line = before + all(nodes, ', ') + after;
  return line.length > LINE ? `${before.trim()}\n  ${indented(all(nodes, '\n'))}\n${after.trim()}` : line;
}

/** A block string. One line stays beside its quotes where it is short, or begins with a space. */
function block(text: string): string {
  const end = /.{71}|[\n\r]|["\\]$/s.test(text) ? '\n' : '';
  const begin = /^[^ \t]|[\n\r]/.test(text) ? end : '';
  return `"""${begin}${text.replaceAll('"""', '\\"""')}${end}"""`;
}

/**
 * Prints a parsed document exactly as graphql does, because a gateway with trusted documents knows a text by its digest. It
 * works without graphql, which an app does not need to follow and to pay. Only of rarer control characters in a text (U+000B, U+0085)
 * does graphql write some in another way.
 */
function print(node: Node | undefined): string {
  if (node === undefined) return '';
  const { name, value, directives, selectionSet, typeCondition } = node;
  const marks = around(' ', all(directives));
  const told = around('', print(node.description), '\n');
  switch (node.kind) {
    case 'Document':
      return all(node.definitions, '\n\n');
    case 'OperationDefinition': {
      const line = around('(', all(node.variableDefinitions, ', '), ')');
      const variables = line.includes('\n') ? `(\n${all(node.variableDefinitions, '\n')}\n)` : line;
      const begin = told + node.operation + around(' ', print(name) + variables) + marks;
      return (begin === 'query' ? '' : `${begin} `) + print(selectionSet);
    }
    case 'VariableDefinition':
      return `${told}${print(node.variable)}: ${print(node.type)}${around(' = ', print(node.defaultValue))}${marks}`;
    case 'SelectionSet':
      return `{\n  ${indented(all(node.selections, '\n'))}\n}`;
    case 'Field': {
      const begin = around('', print(node.alias), ': ') + print(name);
      const line = node.arguments?.[0] ? among(`${begin}(`, node.arguments, ')') : begin;
      return line + marks + around(' ', print(selectionSet));
    }
    case 'FragmentSpread':
      return `...${print(name)}${marks}`;
    case 'InlineFragment':
      return `...${around(' on ', print(typeCondition))}${marks} ${print(selectionSet)}`;
    case 'FragmentDefinition':
      return `${told}fragment ${print(name)} on ${print(typeCondition)}${marks} ${print(selectionSet)}`;
    case 'Directive':
      return `@${print(name)}${around('(', all(node.arguments, ', '), ')')}`;
    case 'Argument':
    case 'ObjectField':
      return `${print(name)}: ${print(value as Node)}`;
    case 'ListValue':
      return among('[', node.values, ']');
    case 'ObjectValue':
      return among('{ ', node.fields, ' }');
    case 'Variable':
      return `$${print(name)}`;
    case 'ListType':
      return `[${print(node.type)}]`;
    case 'NonNullType':
      return `${print(node.type)}!`;
    case 'NamedType':
      return print(name);
    case 'StringValue':
      // JSON leaves U+007F as it is, and graphql escapes it.
      return node.block ? block(value as string) : JSON.stringify(value).replaceAll('\x7f', '\\u007F');
    case 'NullValue':
      return 'null';
    // Names, numbers, enum values, booleans.
    default:
      return String(value);
  }
}
