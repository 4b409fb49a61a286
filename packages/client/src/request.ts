import { type Asked, backlog } from './backlog.ts';
import { textOf } from './print.ts';
import { type Catching, type Details, refused } from './source.ts';

/** A request in the form in which it is sent. */
export interface Request {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly operationName?: string;
  readonly extensions?: Record<string, unknown>;
}

/** A subscription to a log, which can be resumed where it ended. */
export interface Resumable {
  /** Its text. The field has the argument `after`, from a variable, and selects `cursor`. */
  readonly text: string;
  /** The name of that variable. */
  readonly after: string;
  /** The place at which the text itself begins; undefined if it names none. */
  readonly start: string | undefined;
  /** True if the argument or the selection had to be added. */
  readonly isChanged: boolean;
  asked(variables: Readonly<Record<string, unknown>>): Asked;
}

/** The subscriptions that read a log: they have the argument `after`, and events with a `cursor`. */
const LOGS: readonly string[] = ['moneyIn', 'events'];
/** The variable that is added if the text has none for `after`. */
const AFTER = 'pasarelaAfter';

/** Matches strings, comments, the spread, numbers, variables and names, and every other sign. Commas have no meaning. */
const TOKENS = /"""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\])*"|#.*|\.\.\.|-?\d[\w.+-]*|\$?\w+|[^\s,]/g;

interface Token {
  readonly text: string;
  readonly at: number;
}

/** Returns the request for a document. A feed calls its variable `after`, whatever the document calls it. */
export function requestOf(
  document: string | object,
  variables: unknown,
  { operationName, extensions }: Details = {},
): Request & { readonly catching?: Catching } {
  const query = textOf(document);
  // Variables are an object of values by name.
  const named = { ...(variables as Readonly<Record<string, unknown>> | undefined) };
  // Libraries name an operation without a name by an empty text.
  // A request is sent as JSON, which leaves out what is undefined.
  const details = { operationName: operationName || undefined, extensions } as Partial<Request>;
  const log = resumable(query);
  if (log === undefined) return { query, variables: named, ...details };
  const { [log.after]: place = log.start, after = place } = named;
  if (after !== undefined) named[log.after] = after;
  const catching: Catching = (options) => backlog(options, log.asked(named));
  return { query: log.text, variables: named, catching, ...details };
}

/**
 * Returns how a document can be resumed; undefined if it is no subscription to a log.
 *
 * @throws Refused with a sentence, if it can only be followed with a loss of events.
 */
export function resumable(query: string): Resumable | undefined {
  if (!query.includes('subscription')) return undefined;
  return new Reader(query).resumable();
}

/** Returns the value of a string, in either form of GraphQL. */
const stringOf = (text: string): string =>
  text.startsWith('"""') ? text.slice(3, -3) : String(JSON.parse(text));

/** Reads as much of a GraphQL document as is needed to find the subscription's one field. */
class Reader {
  readonly #query: string;
  readonly #tokens: readonly Token[];
  /** By name of a fragment: where its selection begins. */
  readonly #fragments = new Map<string, number>();
  readonly #edits: { readonly at: number; readonly length: number; readonly text: string }[] = [];

  constructor(query: string) {
    this.#query = query;
    this.#tokens = [...query.matchAll(TOKENS)]
      .map(({ 0: text, index }) => ({ text, at: index }))
      .filter(({ text }) => !text.startsWith('#'));
  }

  resumable(): Resumable | undefined {
    const operation = this.#operation();
    if (!operation) return undefined;
    const field = this.#field(operation.selection);
    if (!LOGS.includes(this.#text(field.name))) return undefined;
    const given = this.#arguments(field.open);
    const { after, start } = this.#after(operation.keyword, field, given.get('after'));
    this.#selectCursor(field.selection);
    const argument = (name: string, variables: Readonly<Record<string, unknown>>) =>
      this.#value(given.get(name), variables, operation.keyword);
    return {
      text: this.#edited(),
      after,
      start,
      isChanged: this.#edits.length > 0,
      asked: (variables) => {
        const types = this.#text(field.name) === 'moneyIn' ? 'MONEY_IN' : argument('types', variables);
        // The graph takes a single value for a list of one.
        return {
          types: (types && [types].flat()) as Asked['types'],
          ownerId: argument('ownerId', variables) as Asked['ownerId'],
          clabe: argument('clabe', variables) as Asked['clabe'],
        };
      },
    };
  }

  #text(index: number): string {
    return this.#tokens[index]?.text ?? '';
  }

  /** Returns the index of the bracket that closes the one at `open`; `open` itself if none stands there. */
  #close(open: number): number {
    for (let index = open, depth = 0; index < this.#tokens.length; index += 1) {
      if (/^[([{]$/.test(this.#text(index))) depth += 1;
      if (/^[)\]}]$/.test(this.#text(index))) depth -= 1;
      if (depth === 0) return index;
    }
    return this.#tokens.length;
  }

  /** Returns the index of the first `{` from an index on that is inside no other bracket. */
  #opening(from: number): number {
    let index = from;
    while (index < this.#tokens.length && this.#text(index) !== '{') {
      index = this.#close(index) + 1;
    }
    return index;
  }

  /** Finds the subscription among the definitions, and notes the fragments on the way. */
  #operation(): { readonly keyword: number; readonly selection: number } | undefined {
    let found: { readonly keyword: number; readonly selection: number } | undefined;
    for (let index = 0; index < this.#tokens.length; ) {
      // A definition may begin with its description.
      if (this.#text(index).startsWith('"')) index += 1;
      const selection = this.#opening(index);
      const keyword = this.#text(index);
      if (keyword === 'fragment') this.#fragments.set(this.#text(index + 1), selection);
      if (keyword === 'subscription') found ??= { keyword: index, selection };
      index = this.#close(selection) + 1;
    }
    return found;
  }

  /** Returns the first field of a selection, also if it is inside a fragment. */
  #field(selection: number): { name: number; open: number; selection: number } {
    let index = selection + 1;
    if (this.#text(index) === '__typename') index += 1;
    if (this.#text(index) === '...') {
      const fragment = this.#fragments.get(this.#text(index + 1));
      return this.#field(fragment ?? this.#opening(index));
    }
    const name = this.#text(index + 1) === ':' ? index + 2 : index;
    const open = name + 1;
    return { name, open, selection: this.#opening(open) };
  }

  /** Returns, for the arguments that begin at `open`, the index of each value. */
  #arguments(open: number): Map<string, number> {
    const given = new Map<string, number>();
    if (this.#text(open) !== '(') return given;
    const end = this.#close(open);
    for (let index = open + 1; index < end; index = this.#close(index + 2) + 1) {
      given.set(this.#text(index), index + 2);
    }
    return given;
  }

  #after(
    keyword: number,
    field: { readonly name: number; readonly open: number },
    given: number | undefined,
  ): { readonly after: string; readonly start: string | undefined } {
    const value = given === undefined ? '' : this.#text(given);
    if (value.startsWith('$')) return { after: value.slice(1), start: undefined };
    if (given !== undefined) this.#edit(given, `$${AFTER} `);
    else if (this.#text(field.open) === '(') this.#edit(field.open, `(after: $${AFTER}, `);
    else this.#edit(field.name, `${this.#text(field.name)}(after: $${AFTER})`);
    const named = keyword + Number(/^\w/.test(this.#text(keyword + 1)));
    const defined = `($${AFTER}: Cursor`;
    if (this.#text(named + 1) === '(') this.#edit(named + 1, `${defined}, `);
    else this.#edit(named, `${this.#text(named)}${defined})`);
    return { after: AFTER, start: value.startsWith('"') ? stringOf(value) : undefined };
  }

  #selectCursor(selection: number): void {
    for (let index = selection + 1; index < this.#close(selection); index += 1) {
      const text = this.#text(index);
      index = this.#close(index);
      if (text !== 'cursor' || ['...', 'on', '@', ':'].includes(this.#text(index - 1))) continue;
      const next = this.#text(index + 1);
      const isAlias = next === ':';
      if (isAlias && this.#text(index + 2) !== 'cursor') {
        throw refused('This subscription calls another field `cursor`.');
      }
      if (next !== '@') return;
    }
    this.#edit(selection, '{ cursor ');
  }

  /** Returns the value of an argument: from a variable, its default, or the text itself. */
  #value(index: number | undefined, variables: Readonly<Record<string, unknown>>, keyword: number): unknown {
    if (index === undefined) return null;
    const text = this.#text(index);
    if (text === '[') {
      const items: unknown[] = [];
      for (let item = index + 1; item < this.#close(index); item += 1) {
        items.push(this.#value(item, variables, keyword));
      }
      return items;
    }
    if (text.startsWith('$')) {
      const given = variables[text.slice(1)];
      return given === undefined ? this.#value(this.#default(text, keyword), variables, keyword) : given;
    }
    if (text.startsWith('"')) return stringOf(text);
    return text === 'null' ? null : text;
  }

  /** Returns the index of a variable's default. */
  #default(variable: string, keyword: number): number | undefined {
    let index = this.#tokens.findIndex(({ text }, at) => at > keyword && text === variable);
    do index += 1;
    while (index < this.#tokens.length && !/^[=$)]/.test(this.#text(index)));
    return this.#text(index) === '=' ? index + 1 : undefined;
  }

  #edit(index: number, text: string): void {
    this.#edits.push({ at: this.#tokens[index]?.at ?? 0, length: this.#text(index).length, text });
  }

  #edited(): string {
    return [...this.#edits]
      .sort((one, other) => other.at - one.at)
      .reduce(
        (query, { at, length, text }) => query.slice(0, at) + text + query.slice(at + length),
        this.#query,
      );
  }
}
