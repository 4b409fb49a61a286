/**
 * Turns Lua, as far as the scripts of this project go, into JavaScript: so the simulator runs the very scripts that Redis runs.
 * A construct that is not known throws, rather than meaning something else.
 */
import * as runtime from './lua-runtime.ts';

type Token = { readonly kind: 'name' | 'number' | 'string' | 'sign' | 'word' | 'end'; readonly text: string };

const WORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
);
const TOKEN =
  /\s+|--[^\n]*|(?<name>[A-Za-z_]\w*)|(?<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<sign>\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}[\];:,.])/gy;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const at = TOKEN.lastIndex;
    const { groups } = TOKEN.exec(text) ?? {};
    if (groups === undefined) throw new SyntaxError(`Lua: ${text.slice(at, at + 40)}`);
    const { name, number, string, sign } = groups;
    if (name !== undefined) tokens.push({ kind: WORDS.has(name) ? 'word' : 'name', text: name });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (string !== undefined) tokens.push({ kind: 'string', text: string });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign });
  }
  return tokens;
}

/** How tightly operators bind; those to the right bind as tightly on both sides. */
const BINDING: Readonly<Record<string, number>> = {
  or: 1,
  and: 2,
  '<': 3,
  '>': 3,
  '<=': 3,
  '>=': 3,
  '~=': 3,
  '==': 3,
  '..': 4,
  '+': 5,
  '-': 5,
  '*': 6,
  '/': 6,
  '%': 6,
};
const UNARY = 7;

/** An expression: what it is in JavaScript, and whether that gives a list of values. */
interface Expression {
  readonly code: string;
  readonly isList: boolean;
}

const one = ({ code, isList }: Expression): string => (isList ? `(${code})[0]` : code);

class Compiler {
  readonly #tokens: readonly Token[];
  #at = 0;
  #temporary = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  program(): string {
    const code = this.#block();
    if (this.#at < this.#tokens.length) throw this.#unknown();
    return code;
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '' };
  }

  #unknown(): SyntaxError {
    const near = this.#tokens.slice(Math.max(0, this.#at - 5), this.#at + 5);
    return new SyntaxError(`Lua: not known, at ${near.map(({ text }) => text).join(' ')}`);
  }

  #is(text: string): boolean {
    return this.#next.text === text && this.#next.kind !== 'string';
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#unknown();
  }

  #name(): string {
    const { kind, text } = this.#next;
    if (kind !== 'name') throw this.#unknown();
    this.#at += 1;
    return `$${text}`;
  }

  #block(): string {
    let code = '';
    while (this.#next.kind !== 'end' && !['end', 'else', 'elseif', 'until'].includes(this.#next.text)) {
      code += `${this.#statement()}\n`;
      this.#take(';');
    }
    return code;
  }

  #body(end = 'end'): string {
    const code = this.#block();
    this.#expect(end);
    return code;
  }

  #statement(): string {
    if (this.#take('local')) return this.#local();
    if (this.#take('if')) return this.#if();
    if (this.#take('for')) return this.#for();
    if (this.#take('break')) return 'break;';
    if (this.#take('while')) {
      const condition = one(this.#expression());
      this.#expect('do');
      return `while (L.truth(${condition})) {\n${this.#body()}}`;
    }
    if (this.#take('return')) {
      const isBare = this.#next.kind === 'end' || ['end', 'else', 'elseif', ';'].includes(this.#next.text);
      return `return ${isBare ? '[]' : this.#list()};`;
    }
    return this.#assignment();
  }

  #local(): string {
    if (this.#take('function')) {
      const name = this.#name();
      return `let ${name}; ${name} = ${this.#function()};`;
    }
    const names = [this.#name()];
    while (this.#take(',')) names.push(this.#name());
    if (!this.#take('=')) return names.map((name) => `let ${name};`).join(' ');
    const values = this.#expressions();
    if (names.length === 1 && values.length === 1 && values[0] !== undefined)
      return `let ${names[0]} = ${one(values[0])};`;
    return `let [${names.join(', ')}] = ${listOf(values)};`;
  }

  #if(): string {
    let code = `if (L.truth(${one(this.#expression())})) {\n`;
    this.#expect('then');
    code += this.#block();
    for (;;) {
      if (this.#take('elseif')) {
        code += `} else if (L.truth(${one(this.#expression())})) {\n`;
        this.#expect('then');
        code += this.#block();
      } else if (this.#take('else')) code += `} else {\n${this.#block()}`;
      else break;
    }
    this.#expect('end');
    return `${code}}`;
  }

  #for(): string {
    const names = [this.#name()];
    while (this.#take(',')) names.push(this.#name());
    if (this.#take('=')) {
      const bounds = this.#expressions().map(one);
      this.#expect('do');
      const [first, last, step = '1'] = bounds;
      this.#temporary += 1;
      const [to, by, at] = ['to', 'by', 'at'].map((word) => `${word}${this.#temporary}`);
      return (
        `for (let ${at} = L.number(${first}), ${to} = L.number(${last}), ${by} = L.number(${step}); ` +
        `${by} > 0 ? ${at} <= ${to} : ${at} >= ${to}; ${at} += ${by}) { let ${names[0]} = ${at};\n${this.#body()}}`
      );
    }
    this.#expect('in');
    const source = one(this.#expression());
    this.#expect('do');
    return `for (let [${names.join(', ')}] of ${source}) {\n${this.#body()}}`;
  }

  #assignment(): string {
    const first = this.#suffixed();
    if (!this.#is('=') && !this.#is(',')) {
      if (!first.isList) throw this.#unknown();
      return `${first.code};`;
    }
    const targets = [first];
    while (this.#take(',')) targets.push(this.#suffixed());
    this.#expect('=');
    const values = this.#expressions();
    const [value] = values;
    if (targets.length === 1 && values.length === 1 && value !== undefined)
      return assigned(first, one(value));
    this.#temporary += 1;
    const all = `all${this.#temporary}`;
    // Lua knows all places before it puts anything into one of them.
    const places = targets.map((target) => `[${placeOf(target) ?? ''}]`).join(', ');
    const each = targets.map((target, index) =>
      placeOf(target) === undefined
        ? `${target.code} = ${all}[${index}];`
        : `L.put(...${all}Places[${index}], ${all}[${index}]);`,
    );
    return `{ const ${all}Places = [${places}], ${all} = ${listOf(values)}; ${each.join(' ')} }`;
  }

  #expressions(): Expression[] {
    const values = [this.#expression()];
    while (this.#take(',')) values.push(this.#expression());
    return values;
  }

  #list(): string {
    return listOf(this.#expressions());
  }

  #expression(least = 0): Expression {
    let left = this.#operand();
    for (;;) {
      const { text, kind } = this.#next;
      const binding = kind === 'string' ? undefined : BINDING[text];
      if (binding === undefined || binding <= least) return left;
      this.#at += 1;
      // `..` binds to the right.
      const right = this.#expression(text === '..' ? binding - 1 : binding);
      left = { code: binary(text, one(left), one(right)), isList: false };
    }
  }

  #operand(): Expression {
    if (this.#take('not')) return { code: `!L.truth(${one(this.#expression(UNARY))})`, isList: false };
    if (this.#take('-')) return { code: `-L.number(${one(this.#expression(UNARY))})`, isList: false };
    if (this.#take('#')) return { code: `L.length(${one(this.#expression(UNARY))})`, isList: false };
    return this.#simple();
  }

  #simple(): Expression {
    const { kind, text } = this.#next;
    const literal = (code: string): Expression => {
      this.#at += 1;
      return { code, isList: false };
    };
    if (kind === 'number') return literal(text);
    if (kind === 'string') return literal(JSON.stringify(unquoted(text)));
    if (this.#is('nil')) return literal('undefined');
    if (this.#is('true') || this.#is('false')) return literal(text);
    if (this.#take('function')) return { code: this.#function(), isList: false };
    if (this.#is('{')) return { code: this.#table(), isList: false };
    return this.#suffixed();
  }

  #function(): string {
    this.#expect('(');
    const names: string[] = [];
    while (!this.#take(')')) {
      names.push(this.#name());
      this.#take(',');
    }
    return `(${names.join(', ')}) => {\n${this.#body()}return [];\n}`;
  }

  #table(): string {
    this.#expect('{');
    const items: Expression[] = [];
    const fields: string[] = [];
    while (!this.#take('}')) {
      const [name, sign] = [this.#next, this.#tokens[this.#at + 1]];
      if (this.#take('[')) {
        const key = one(this.#expression());
        this.#expect(']');
        this.#expect('=');
        fields.push(`[${key}, ${one(this.#expression())}]`);
      } else if (name.kind === 'name' && sign?.text === '=') {
        this.#at += 2;
        fields.push(`['${name.text}', ${one(this.#expression())}]`);
      } else items.push(this.#expression());
      if (!this.#take(',')) this.#take(';');
    }
    return `L.table(${listOf(items)}${fields.length > 0 ? `, [${fields.join(', ')}]` : ''})`;
  }

  #suffixed(): Expression {
    let left: Expression;
    if (this.#take('(')) {
      left = { code: `(${one(this.#expression())})`, isList: false };
      this.#expect(')');
    } else left = { code: this.#name(), isList: false };
    for (;;) {
      if (this.#take('[')) {
        left = { code: `L.at(${one(left)}, ${one(this.#expression())})`, isList: false };
        this.#expect(']');
      } else if (this.#take('.')) {
        left = { code: `L.at(${one(left)}, '${this.#name().slice(1)}')`, isList: false };
      } else if (this.#take(':')) {
        const method = this.#name().slice(1);
        this.#expect('(');
        left = { code: `L.method(${one(left)}, '${method}', ${this.#arguments()})`, isList: true };
      } else if (this.#take('(')) {
        left = { code: `L.call(${one(left)}, ${this.#arguments()})`, isList: true };
      } else return left;
    }
  }

  #arguments(): string {
    if (this.#take(')')) return '[]';
    const list = this.#list();
    this.#expect(')');
    return list;
  }
}

/** A list of values: all of the last expression's, and one of each before it. */
function listOf(values: readonly Expression[]): string {
  const parts = values.map((value, index) =>
    index === values.length - 1 && value.isList ? `...${value.code}` : one(value),
  );
  return `[${parts.join(', ')}]`;
}

/** The table and the key that an expression names; undefined for a variable. */
const placeOf = ({ code }: Expression): string | undefined =>
  code.startsWith('L.at(') ? code.slice('L.at('.length, -1) : undefined;

function assigned(target: Expression, value: string): string {
  const place = placeOf(target);
  return place === undefined ? `${target.code} = ${value};` : `L.put(${place}, ${value});`;
}

function binary(sign: string, left: string, right: string): string {
  switch (sign) {
    case 'or':
      return `L.or(${left}, () => ${right})`;
    case 'and':
      return `L.and(${left}, () => ${right})`;
    case '==':
      return `(${left} === ${right})`;
    case '~=':
      return `(${left} !== ${right})`;
    case '..':
      return `(L.text(${left}) + L.text(${right}))`;
    case '<':
    case '>':
    case '<=':
    case '>=':
      return `(L.ordered(${left}, ${right}) && ${left} ${sign} ${right})`;
    case '%':
      return `L.modulo(${left}, ${right})`;
    default:
      return `(L.number(${left}) ${sign} L.number(${right}))`;
  }
}

const unquoted = (text: string): string =>
  text.slice(1, -1).replaceAll(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));

/** A script as a function of what it calls Redis by, its keys and its arguments. */
export type Compiled = (
  redis: runtime.RedisInLua,
  keys: readonly string[],
  args: readonly string[],
) => unknown;

const GLOBALS = Object.keys(runtime.globals);

export function compileLua(text: string): Compiled {
  const code = new Compiler(text).program();
  const make = new Function(
    'L',
    'KEYS',
    'ARGV',
    '$redis',
    ...GLOBALS.map((name) => `$${name}`),
    code.replaceAll(/\$(KEYS|ARGV)\b/g, '$1'),
  );
  return (redis, keys, args) => {
    const values = make(
      runtime.operations,
      runtime.operations.table([...keys]),
      runtime.operations.table([...args]),
      runtime.redisTable(redis),
      ...Object.values(runtime.globals),
    ) as readonly unknown[] | undefined;
    return runtime.replyOf(values?.[0]);
  };
}
