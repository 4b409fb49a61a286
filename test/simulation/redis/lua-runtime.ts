import { createHash } from 'node:crypto';

/** What compiled Lua (lua-compile.ts) runs on: tables, strings, numbers and patterns as Lua 5.1 has them, as far as scripts use them. */

/** What a script calls. Replies are as Redis gives them: text, number, null, or a list of those. An error is thrown. */
export interface RedisInLua {
  call(command: string, ...args: string[]): unknown;
}

/** What `redis.error_reply` makes, and `redis.call` throws. */
export class LuaError extends Error {}

type Function_ = (...args: readonly unknown[]) => readonly unknown[];

export class Table {
  readonly list: unknown[];
  readonly fields: Map<unknown, unknown>;

  constructor(list: unknown[], fields?: readonly (readonly [unknown, unknown])[]) {
    // A list ends before its first nil.
    const end = list.indexOf(undefined);
    this.list = end === -1 ? list : list.slice(0, end);
    this.fields = new Map(fields);
    if (end !== -1) {
      for (let at = end; at < list.length; at += 1)
        if (list[at] !== undefined) this.fields.set(at + 1, list[at]);
    }
  }

  get(key: unknown): unknown {
    return typeof key === 'number' && key >= 1 && key <= this.list.length
      ? this.list[key - 1]
      : this.fields.get(key);
  }

  set(key: unknown, value: unknown): void {
    const { list, fields } = this;
    if (typeof key === 'number' && key >= 1 && key <= list.length) {
      if (value === undefined && key === list.length) list.pop();
      else list[key - 1] = value;
    } else if (key === list.length + 1 && value !== undefined) {
      list.push(value);
      while (fields.has(list.length + 1)) {
        const next = list.length + 1;
        list.push(fields.get(next));
        fields.delete(next);
      }
    } else if (value === undefined) fields.delete(key);
    else fields.set(key, value);
  }
}

const isTrue = (value: unknown): boolean => value !== undefined && value !== false;

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  const found = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  if (Number.isNaN(found)) throw new LuaError(`attempt to perform arithmetic on ${String(value)}`);
  return found;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number')
    return Number.isInteger(value) && Math.abs(value) < 1e14
      ? String(value)
      : String(Number(value.toPrecision(14)));
  throw new LuaError(`attempt to concatenate ${String(value)}`);
}

const stringMethods: Readonly<Record<string, Function_>> = {
  match: (text, pattern) => {
    const found = expression(String(pattern)).exec(textOf(text));
    if (found === null) return [undefined];
    return found.length > 1 ? found.slice(1) : [found[0]];
  },
  gmatch: (text, pattern) => [
    [...textOf(text).matchAll(expression(String(pattern), 'g'))].map((found) =>
      found.length > 1 ? found.slice(1) : [found[0]],
    ),
  ],
  gsub: (text, pattern, by) => {
    let count = 0;
    const replaced = textOf(text).replace(expression(String(pattern), 'g'), (...found) => {
      count += 1;
      return String(by).replaceAll(/%(\d)/g, (_, number: string) => String(found[Number(number)]));
    });
    return [replaced, count];
  },
  find: (text, what, from, isPlain) => {
    if (!isTrue(isPlain)) throw new LuaError('find knows plain texts alone');
    const at = textOf(text).indexOf(String(what), numberOf(from) - 1);
    return at === -1 ? [undefined] : [at + 1, at + String(what).length];
  },
  sub: (text, from, to = -1) => {
    const all = textOf(text);
    const place = (at: number) => (at < 0 ? all.length + at + 1 : at);
    return [all.slice(Math.max(place(numberOf(from)), 1) - 1, Math.max(place(numberOf(to)), 0))];
  },
  // What is searched for so is ASCII.
  byte: (text, at = 1) => {
    const code = textOf(text).charCodeAt(numberOf(at) - 1);
    return Number.isNaN(code) ? [] : [code];
  },
  // Of ASCII alone, as Redis' Lua in the C locale.
  lower: (text) => [textOf(text).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())],
  rep: (text, count) => [textOf(text).repeat(Math.max(0, numberOf(count)))],
  format: (pattern, ...values) => {
    let at = 0;
    const text = String(pattern).replaceAll(/%(0?)(\d*)\.0f|%s/g, (found, zero: string, width: string) => {
      const value = values[at];
      at += 1;
      if (found === '%s') return textOf(value);
      const whole = BigInt(Math.round(numberOf(value))).toString();
      return zero === '0' ? whole.padStart(Number(width), '0') : whole;
    });
    return [text];
  },
};

const expressions = new Map<string, RegExp>();

/** A Lua pattern as a regular expression. */
function expression(pattern: string, flags = ''): RegExp {
  const key = flags + pattern;
  const known = expressions.get(key);
  if (known !== undefined) return known;
  const classes: Readonly<Record<string, string>> = { d: '\\d', w: '[A-Za-z0-9]', s: '\\s', S: '\\S' };
  let source = '';
  let isInSet = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const letter = pattern[at] ?? '';
    if (letter === '%') {
      at += 1;
      const escaped = pattern[at] ?? '';
      source += classes[escaped] ?? `\\${escaped}`;
    } else if (letter === '-' && isInSet) source += '\\-';
    else if (letter === '-') {
      // After a capture it means itself, else as few as possible of what stands before it.
      source += ['', '(', ')', '^'].includes(pattern[at - 1] ?? '') ? '-' : '*?';
    } else if (letter === '|' || letter === '/') throw new LuaError(`pattern ${pattern} is not known`);
    else {
      isInSet = letter === '[' || (isInSet && letter !== ']');
      source += letter;
    }
  }
  const made = new RegExp(source, `${flags}s`);
  expressions.set(key, made);
  return made;
}

const table = (list: readonly unknown[], fields?: readonly (readonly [unknown, unknown])[]): Table =>
  new Table([...list], fields);

const at = (value: unknown, key: unknown): unknown => {
  if (value instanceof Table) return value.get(key);
  if (typeof value === 'object' && value !== null) return Reflect.get(value, String(key));
  throw new LuaError(`attempt to index ${String(value)} with ${String(key)}`);
};

const call = (what: unknown, args: readonly unknown[]): readonly unknown[] => {
  if (typeof what !== 'function') throw new LuaError(`attempt to call ${String(what)}`);
  return (what as Function_)(...args);
};

export const operations = {
  truth: isTrue,
  number: numberOf,
  text: textOf,
  or: (left: unknown, right: () => unknown) => (isTrue(left) ? left : right()),
  and: (left: unknown, right: () => unknown) => (isTrue(left) ? right() : left),
  ordered(left: unknown, right: unknown) {
    if (typeof left !== typeof right || !['number', 'string'].includes(typeof left))
      throw new LuaError(`attempt to compare ${String(left)} with ${String(right)}`);
    return true;
  },
  modulo: (left: unknown, right: unknown) => {
    const [one, other] = [numberOf(left), numberOf(right)];
    return one - Math.floor(one / other) * other;
  },
  length: (value: unknown) => (value instanceof Table ? value.list.length : Buffer.byteLength(textOf(value))),
  table,
  at,
  put(value: unknown, key: unknown, item: unknown) {
    if (!(value instanceof Table)) throw new LuaError(`attempt to index ${String(value)}`);
    value.set(key, item);
  },
  call,
  method: (value: unknown, name: string, args: readonly unknown[]) =>
    call(stringMethods[name], [value, ...args]),
};

const toLua = (reply: unknown): unknown => {
  if (reply === null || reply === undefined) return false;
  return Array.isArray(reply) ? table(reply.map(toLua)) : reply;
};

/** A value of Lua as Redis replies with it. */
export function replyOf(value: unknown): unknown {
  if (value === undefined || value === false) return null;
  if (value === true) return 1;
  if (typeof value === 'number') return Math.trunc(value);
  if (!(value instanceof Table)) return value;
  const error = value.fields.get('err');
  if (error !== undefined) throw new LuaError(String(error));
  return value.list.map(replyOf);
}

export const redisTable = (redis: RedisInLua) => {
  const run: Function_ = (...args) => [toLua(redis.call(...(args.map(textOf) as [string, ...string[]])))];
  return {
    call: run,
    pcall: ((...args) => {
      try {
        return run(...args);
      } catch (error) {
        return [table([], [['err', error instanceof Error ? error.message : String(error)]])];
      }
    }) satisfies Function_,
    sha1hex: ((text) => [createHash('sha1').update(textOf(text)).digest('hex')]) satisfies Function_,
    error_reply: ((text) => [table([], [['err', text]])]) satisfies Function_,
  };
};

const typeOf = (value: unknown): string =>
  value === undefined ? 'nil' : value instanceof Table ? 'table' : typeof value;

const jsonToLua = (value: unknown): unknown => (Array.isArray(value) ? table(value.map(jsonToLua)) : value);

export const globals: Readonly<Record<string, unknown>> = {
  error: (text: unknown) => {
    throw new LuaError(`ERR ${textOf(text)}`);
  },
  string: stringMethods,
  math: {
    floor: (value: unknown) => [Math.floor(numberOf(value))],
    ceil: (value: unknown) => [Math.ceil(numberOf(value))],
    abs: (value: unknown) => [Math.abs(numberOf(value))],
    min: (...values: unknown[]) => [Math.min(...values.map(numberOf))],
    max: (...values: unknown[]) => [Math.max(...values.map(numberOf))],
  },
  table: {
    sort: (what: Table, isBefore?: Function_) => {
      what.list.sort((one, other) =>
        isBefore === undefined
          ? String(one) < String(other)
            ? -1
            : 1
          : isTrue(isBefore(one, other)[0])
            ? -1
            : isTrue(isBefore(other, one)[0])
              ? 1
              : 0,
      );
      return [];
    },
    remove: (what: Table, place?: number) =>
      place === undefined ? [what.list.pop()] : what.list.splice(place - 1, 1),
    insert: (what: Table, value: unknown) => {
      what.list.push(value);
      return [];
    },
    concat: (what: Table, by = '') => [what.list.map(textOf).join(by)],
  },
  cjson: {
    decode: (text: string) => {
      try {
        return [jsonToLua(JSON.parse(text))];
      } catch {
        throw new LuaError(`attempt to decode ${text}`);
      }
    },
  },
  unpack: (what: Table, from = 1, to = what.list.length) =>
    Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => what.get(from + index)),
  ipairs: (what: Table) => [what.list.map((value, index) => [index + 1, value])],
  pairs: (what: Table) => [[...what.list.map((value, index) => [index + 1, value]), ...what.fields]],
  pcall: (what: unknown, ...args: unknown[]) => {
    try {
      return [true, ...call(what, args)];
    } catch (error) {
      return [false, error instanceof Error ? error.message : String(error)];
    }
  },
  tonumber: (value: unknown) => {
    if (typeof value === 'number') return [value];
    const found = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
    return [Number.isNaN(found) ? undefined : found];
  },
  tostring: (value: unknown) => [typeof value === 'number' ? textOf(value) : String(value)],
  type: (value: unknown) => [typeOf(value)],
};
