import { Refused } from './source.ts';

/** A document as the text that is sent. Throws where relay-compiler has left it out. */
export function textOf(document: string | object): string {
  const { kind, params } = document as { kind?: string; params?: { text?: string | null } };
  // graphql's own name for a parsed document.
  if (kind === 'Document') return print(document as Node);
  // relay-compiler keeps the text with what it made of it; graphql-codegen's strings are String objects.
  if (params?.text === null)
    throw new Refused({
      message: 'relay-compiler left out the text: set include_query_text in persistConfig.',
      extensions: { code: 'BAD_USER_INPUT' },
    });
  return params?.text ?? String(document);
}

/** A node of a parsed document, as far as it is printed: each kind has some of these. */
interface Node {
  readonly kind: string;
  readonly operation?: string;
  readonly value?: Node | string | boolean;
  readonly block?: boolean;
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

/** The longest line of a field with its arguments beside each other. */
const LINE = 80;
const all = (nodes: readonly Node[] = [], between = ' '): string => nodes.map(print).join(between);
const around = (before: string, text: string, after = ''): string =>
  text === '' ? '' : before + text + after;
const indented = (text: string): string => text.replaceAll('\n', '\n  ');

/**
 * Prints a parsed document as graphql does, to the letter: a gateway with trusted documents knows a text by its digest. Without
 * graphql itself, which an app does not need to follow and to pay.
 */
function print(node: Node | undefined): string {
  if (node === undefined) return '';
  const { name, value, directives, selectionSet, typeCondition } = node;
  const marks = around(' ', all(directives));
  switch (node.kind) {
    case 'Document':
      return all(node.definitions, '\n\n');
    case 'OperationDefinition': {
      const variables = around('(', all(node.variableDefinitions, ', '), ')');
      const begin = [node.operation, print(name) + variables].filter((part) => part !== '').join(' ') + marks;
      return (begin === 'query' ? '' : `${begin} `) + print(selectionSet);
    }
    case 'VariableDefinition':
      return `${print(node.variable)}: ${print(node.type)}${around(' = ', print(node.defaultValue))}${marks}`;
    case 'SelectionSet':
      return `{\n  ${indented(all(node.selections, '\n'))}\n}`;
    case 'Field': {
      const begin = around('', print(node.alias), ': ') + print(name);
      const line = begin + around('(', all(node.arguments, ', '), ')');
      const long = `${begin}(\n  ${indented(all(node.arguments, '\n'))}\n)`;
      return (line.length > LINE ? long : line) + marks + around(' ', print(selectionSet));
    }
    case 'FragmentSpread':
      return `...${print(name)}${marks}`;
    case 'InlineFragment':
      return `...${around(' on ', print(typeCondition))}${marks} ${print(selectionSet)}`;
    case 'FragmentDefinition':
      return `fragment ${print(name)} on ${print(typeCondition)}${marks} ${print(selectionSet)}`;
    case 'Directive':
      return `@${print(name)}${around('(', all(node.arguments, ', '), ')')}`;
    case 'Argument':
    case 'ObjectField':
      return `${print(name)}: ${print(value as Node)}`;
    case 'ListValue':
      return `[${all(node.values, ', ')}]`;
    case 'ObjectValue':
      return `{ ${all(node.fields, ', ')} }`;
    case 'Variable':
      return `$${print(name)}`;
    case 'ListType':
      return `[${print(node.type)}]`;
    case 'NonNullType':
      return `${print(node.type)}!`;
    case 'NamedType':
      return print(name);
    case 'StringValue':
      return JSON.stringify(value);
    case 'NullValue':
      return 'null';
    // Names, numbers, enum values, booleans.
    default:
      return String(value);
  }
}
