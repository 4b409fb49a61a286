import { hash } from 'node:crypto';
import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type OperationTypeNode,
} from 'graphql';

/** One operation of a document, with all that follows from the two of them, each thing derived once. */
export class PreparedOperation {
  readonly document: PreparedDocument;
  readonly node: OperationDefinitionNode;
  /** How often identified callers have run it. */
  runs = 0;
  readonly #derived = new Map<unknown, unknown>();
  #id: string | undefined;

  constructor(document: PreparedDocument, node: OperationDefinitionNode) {
    this.document = document;
    this.node = node;
  }

  get type(): OperationTypeNode {
    return this.node.operation;
  }

  get name(): string | undefined {
    return this.node.name?.value;
  }

  /** The same for the same operation of the same text, kept or not. */
  get id(): string {
    this.#id ??= `${hash('sha256', this.document.text, 'base64url')} ${this.name ?? ''}`;
    return this.#id;
  }

  /** What `derive` makes of this operation, made at the first call. It must depend on nothing else. */
  derived<T>(derive: (operation: PreparedOperation) => T): T {
    if (!this.#derived.has(derive)) this.#derived.set(derive, derive(this));
    // Nothing but what this function has made stands under it.
    return this.#derived.get(derive) as T;
  }
}

/** A parsed document. */
export class PreparedDocument {
  readonly schema: GraphQLSchema;
  readonly node: DocumentNode;
  readonly text: string;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly operations: readonly PreparedOperation[];
  /** Whether it is within the limits and valid. */
  isValid = false;
  #planBytes = 0;

  constructor(schema: GraphQLSchema, node: DocumentNode) {
    this.schema = schema;
    this.node = node;
    this.text = node.loc?.source.body ?? '';
    const fragments = new Map<string, FragmentDefinitionNode>();
    const operations: PreparedOperation[] = [];
    for (const definition of node.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
      if (definition.kind === Kind.OPERATION_DEFINITION)
        operations.push(new PreparedOperation(this, definition));
    }
    this.fragments = fragments;
    this.operations = operations;
  }

  /** Undefined where there is none of this name, or several and no name. */
  operation(name: string | null | undefined): PreparedOperation | undefined {
    if (name == null) return this.operations.length === 1 ? this.operations[0] : undefined;
    return this.operations.find((operation) => operation.name === name);
  }

  /** Memory that it takes with all that is derived from it, in bytes, as an upper estimate. */
  get bytes(): number {
    return FIXED_BYTES + BYTES_PER_CHARACTER * this.text.length + this.#planBytes;
  }

  /** A plan of one of its operations was made. */
  addPlan(bytes: number): void {
    this.#planBytes += bytes;
  }
}

/** What a parsed document takes for each character of its text, and beside that. Measured. */
const BYTES_PER_CHARACTER = 150;
const FIXED_BYTES = 2_000;

const prepared = new WeakMap<DocumentNode, PreparedDocument>();

/** What is known of a document. Lives as long as the document does. */
export function preparedDocument(schema: GraphQLSchema, node: DocumentNode): PreparedDocument {
  let document = prepared.get(node);
  if (document === undefined) {
    document = new PreparedDocument(schema, node);
    prepared.set(node, document);
  }
  return document;
}

/** The operation that is to be executed; undefined where the document does not say which. */
export const preparedOperation = (args: {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operationName?: string | null | undefined;
}): PreparedOperation | undefined =>
  preparedDocument(args.schema, args.document).operation(args.operationName);
