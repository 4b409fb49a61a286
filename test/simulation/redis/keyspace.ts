import { LuaError } from './lua-runtime.ts';

/** One entry of a stream. */
interface StreamEntry {
  readonly id: string;
  readonly fields: readonly string[];
}

type Value =
  | { readonly type: 'string'; text: string }
  | { readonly type: 'hash'; readonly fields: Map<string, string> }
  | { readonly type: 'list'; readonly items: string[] }
  | { readonly type: 'set'; readonly members: Set<string> }
  | {
      readonly type: 'sorted';
      readonly scores: Map<string, number>;
      /** By score and text, once that was asked for; undefined after a change. */
      order: readonly (readonly [member: string, score: number])[] | undefined;
    }
  | { readonly type: 'stream'; entries: StreamEntry[]; lastId: string };

interface Held {
  value: Value;
  /** Ms since 1970. */
  expiresAt: number | undefined;
}

/** A write as replicas are told of it: without relative times, and with the ids that were given. */
export type Effect = readonly [command: string, ...args: string[]];

const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';

/** The data of one server: as much of Redis as the gateway uses, without any connection. */
export class Keyspace {
  readonly #now: () => number;
  readonly #held: Map<string, Held>;
  /** Told of each write that has changed something. */
  onEffect: ((effect: Effect) => void) | undefined;

  constructor(now: () => number, from?: Keyspace) {
    this.#now = now;
    this.#held = new Map();
    if (from !== undefined) this.take(from, () => true);
  }

  /** Takes a copy of some keys of another. */
  take(from: Keyspace, isMeant: (key: string) => boolean): void {
    for (const [key, { value, expiresAt }] of from.#held)
      if (isMeant(key)) this.#held.set(key, { value: copyOf(value), expiresAt });
  }

  clear(): void {
    this.#held.clear();
  }

  keys(): string[] {
    return [...this.#held.keys()].filter((key) => this.#find(key) !== undefined);
  }

  /** Runs a command. @throws {LuaError} with what Redis would say */
  run(command: string, args: readonly string[]): unknown {
    const upper = command.toUpperCase();
    const known = COMMANDS[upper];
    // That is the model's own fault, and no reply of Redis.
    if (known === undefined) throw new TypeError(`the model of Redis does not know ${command}`);
    return known(new Call(this, upper, args), ...args);
  }

  /** Applies what another server has told of. */
  apply([command, ...args]: Effect): void {
    this.run(command, args);
  }

  now(): number {
    return this.#now();
  }

  #find(key: string): Held | undefined {
    const held = this.#held.get(key);
    if (held?.expiresAt !== undefined && held.expiresAt <= this.#now()) {
      this.#held.delete(key);
      return undefined;
    }
    return held;
  }

  value<Type extends Value['type']>(key: string, type: Type): Extract<Value, { type: Type }> | undefined {
    const held = this.#find(key);
    if (held === undefined) return undefined;
    if (held.value.type !== type) throw new LuaError(WRONG_TYPE);
    // The type has just been compared.
    return held.value as Extract<Value, { type: Type }>;
  }

  put(key: string, value: Value): void {
    this.#held.set(key, { value, expiresAt: undefined });
  }

  delete(key: string): boolean {
    return this.#find(key) !== undefined && this.#held.delete(key);
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  expire(key: string, at: number): boolean {
    const held = this.#find(key);
    if (held === undefined) return false;
    held.expiresAt = at;
    return true;
  }
}

/** A copy that changes by itself. Entries of streams never change. */
function copyOf(value: Value): Value {
  if (value.type === 'hash') return { ...value, fields: new Map(value.fields) };
  if (value.type === 'list') return { ...value, items: [...value.items] };
  if (value.type === 'set') return { ...value, members: new Set(value.members) };
  if (value.type === 'sorted') return { ...value, scores: new Map(value.scores) };
  return value.type === 'stream' ? { ...value, entries: [...value.entries] } : { ...value };
}

/** A command that is being run. */
class Call {
  readonly #keyspace: Keyspace;
  readonly #command: string;
  readonly #args: readonly string[];

  constructor(keyspace: Keyspace, command: string, args: readonly string[]) {
    this.#keyspace = keyspace;
    this.#command = command;
    this.#args = args;
  }

  get keyspace(): Keyspace {
    return this.#keyspace;
  }

  /** Tells that something has changed, as the command itself or as another that does the same later too. */
  changed(...effect: string[]): void {
    const [command = this.#command, ...args] = effect;
    this.#keyspace.onEffect?.([command, ...(effect.length > 0 ? args : this.#args)]);
  }

  hash(key: string): Map<string, string> | undefined {
    return this.#keyspace.value(key, 'hash')?.fields;
  }

  makeHash(key: string): Map<string, string> {
    const found = this.hash(key);
    if (found !== undefined) return found;
    const fields = new Map<string, string>();
    this.#keyspace.put(key, { type: 'hash', fields });
    return fields;
  }
}

type Command = (call: Call, ...args: string[]) => unknown;

const partsOf = (id: string): readonly [number, number] => {
  const [time, sequence] = id.split('-');
  return [Number(time), Number(sequence ?? 0)];
};
const compareIds = (one: string, other: string): number => {
  const [a, b] = [partsOf(one), partsOf(other)];
  return a[0] - b[0] || a[1] - b[1];
};

/** Whether an id is within a bound, as XRANGE writes them. */
const reaches = (id: string, bound: string, isLow: boolean): boolean => {
  if (bound === '-' || bound === '+') return (bound === '-') === isLow;
  const isOpen = bound.startsWith('(');
  const order = compareIds(
    id,
    isOpen ? bound.slice(1) : bound.includes('-') || isLow ? bound : `${bound}-1e15`,
  );
  return isLow ? (isOpen ? order > 0 : order >= 0) : isOpen ? order < 0 : order <= 0;
};

function range(
  call: Call,
  key: string,
  low: string,
  high: string,
  rest: readonly string[],
  isBack: boolean,
): unknown {
  const entries = call.keyspace.value(key, 'stream')?.entries ?? [];
  const count = rest[0]?.toUpperCase() === 'COUNT' ? Number(rest[1]) : Number.POSITIVE_INFINITY;
  // Entries are in order: where they begin is found by halves.
  let [from, to] = [0, entries.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (reaches(entries[middle]?.id ?? '', low, true)) to = middle;
    else from = middle + 1;
  }
  const found: StreamEntry[] = [];
  if (isBack) {
    for (let at = entries.length - 1; at >= from && found.length < count; at -= 1) {
      const entry = entries[at];
      if (entry !== undefined && reaches(entry.id, high, false)) found.push(entry);
    }
  } else {
    for (let at = from; at < entries.length && found.length < count; at += 1) {
      const entry = entries[at];
      if (entry === undefined || !reaches(entry.id, high, false)) break;
      found.push(entry);
    }
  }
  return found.map(({ id, fields }) => [id, [...fields]]);
}

const byText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const byScore = ([one, a]: readonly [string, number], [other, b]: readonly [string, number]): number =>
  a === b ? byText(one, other) : a - b;

const scoreOf = (text: string): number =>
  text === '+inf' ? Number.POSITIVE_INFINITY : text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text);

/** Whether a score is within a bound, as BYSCORE writes them. */
const isScored = (score: number, bound: string, isLow: boolean): boolean => {
  const isOpen = bound.startsWith('(');
  const order = score - scoreOf(isOpen ? bound.slice(1) : bound);
  return isLow ? (isOpen ? order > 0 : order >= 0) : isOpen ? order < 0 : order <= 0;
};

/** Whether a member is within a bound, as BYLEX writes them. */
const isWithin = (member: string, bound: string, isLow: boolean): boolean => {
  if (bound === '-' || bound === '+') return (bound === '-') === isLow;
  const order = byText(member, bound.slice(1));
  const closed = bound.startsWith('[') && order === 0;
  return closed || (isLow ? order > 0 : order < 0);
};

const CONFIG: Readonly<Record<string, string>> = {
  appendonly: 'yes',
  appendfsync: 'always',
  maxmemory: '0',
  'maxmemory-policy': 'noeviction',
  'min-replicas-to-write': '1',
  'cluster-replica-validity-factor': '10',
};

const COMMANDS: Readonly<Record<string, Command>> = {
  PING: () => 'PONG',
  TIME: ({ keyspace }) => [String(Math.floor(keyspace.now() / 1000)), String((keyspace.now() % 1000) * 1000)],
  CONFIG: (_call, _get, ...names) => names.flatMap((name) => [name, CONFIG[name] ?? '']),
  GET: ({ keyspace }, key) => keyspace.value(key, 'string')?.text ?? null,
  SET(call, key, text = '', ...options) {
    const upper = options.map((option) => option.toUpperCase());
    if (upper.includes('NX') && call.keyspace.has(key)) return null;
    if (upper.includes('XX') && !call.keyspace.has(key)) return null;
    call.keyspace.put(key, { type: 'string', text });
    const life = upper.indexOf('PX');
    const until = upper.indexOf('PXAT');
    const at =
      life >= 0
        ? call.keyspace.now() + Number(options[life + 1])
        : until >= 0
          ? Number(options[until + 1])
          : undefined;
    if (at !== undefined) call.keyspace.expire(key, at);
    call.changed('SET', key, text, ...(at === undefined ? [] : ['PXAT', String(at)]));
    return 'OK';
  },
  DEL(call, ...keys) {
    const gone = keys.filter((key) => call.keyspace.delete(key));
    if (gone.length > 0) call.changed('DEL', ...gone);
    return gone.length;
  },
  EXISTS: ({ keyspace }, ...keys) => keys.filter((key) => keyspace.has(key)).length,
  PEXPIRE(call, key, life) {
    const at = call.keyspace.now() + Number(life);
    if (!call.keyspace.expire(key, at)) return 0;
    call.changed('PEXPIREAT', key, String(at));
    return 1;
  },
  PEXPIREAT: ({ keyspace }, key, at) => (keyspace.expire(key, Number(at)) ? 1 : 0),
  HGET: (call, key, field = '') => call.hash(key)?.get(field) ?? null,
  HMGET(call, key, ...fields) {
    const hash = call.hash(key);
    return fields.map((field) => hash?.get(field) ?? null);
  },
  HEXISTS: (call, key, field = '') => (call.hash(key)?.has(field) === true ? 1 : 0),
  HSET(call, key, ...pairs) {
    const hash = call.makeHash(key);
    const before = hash.size;
    for (let at = 0; at + 1 < pairs.length; at += 2) hash.set(pairs[at] ?? '', pairs[at + 1] ?? '');
    call.changed();
    return hash.size - before;
  },
  HSETNX(call, key, field = '', text = '') {
    if (call.hash(key)?.has(field) === true) return 0;
    call.makeHash(key).set(field, text);
    call.changed();
    return 1;
  },
  HINCRBY(call, key, field = '', by) {
    const hash = call.makeHash(key);
    const value = Number(hash.get(field) ?? 0) + Number(by);
    hash.set(field, String(value));
    call.changed('HSET', key, field, String(value));
    return value;
  },
  HDEL(call, key, ...fields) {
    const hash = call.hash(key);
    const gone = fields.filter((field) => hash?.delete(field) === true);
    if (hash?.size === 0) call.keyspace.delete(key);
    if (gone.length > 0) call.changed();
    return gone.length;
  },
  HGETALL: (call, key) => [...(call.hash(key) ?? [])].flat(),
  SADD(call, key, ...members) {
    const found = call.keyspace.value(key, 'set')?.members ?? new Set<string>();
    const added = [...new Set(members.filter((member) => !found.has(member)))];
    for (const member of added) found.add(member);
    if (!call.keyspace.has(key)) call.keyspace.put(key, { type: 'set', members: found });
    if (added.length > 0) call.changed();
    return added.length;
  },
  SREM(call, key, ...members) {
    const found = call.keyspace.value(key, 'set')?.members;
    const gone = members.filter((member) => found?.delete(member) === true);
    if (found?.size === 0) call.keyspace.delete(key);
    if (gone.length > 0) call.changed();
    return gone.length;
  },
  SMEMBERS: ({ keyspace }, key) => [...(keyspace.value(key, 'set')?.members ?? [])],
  RPUSH(call, key, ...items) {
    const found = call.keyspace.value(key, 'list')?.items ?? [];
    found.push(...items);
    if (!call.keyspace.has(key)) call.keyspace.put(key, { type: 'list', items: found });
    call.changed();
    return found.length;
  },
  LPOP(call, key) {
    const found = call.keyspace.value(key, 'list')?.items;
    const item = found?.shift();
    if (found?.length === 0) call.keyspace.delete(key);
    if (item !== undefined) call.changed();
    return item ?? null;
  },
  LINDEX: ({ keyspace }, key, at) => keyspace.value(key, 'list')?.items.at(Number(at)) ?? null,
  LLEN: ({ keyspace }, key) => keyspace.value(key, 'list')?.items.length ?? 0,
  ZADD(call, key, ...rest) {
    const isNew = rest[0]?.toUpperCase() === 'NX';
    const pairs = isNew ? rest.slice(1) : rest;
    const found = call.keyspace.value(key, 'sorted') ?? {
      type: 'sorted' as const,
      scores: new Map<string, number>(),
      order: undefined,
    };
    const before = found.scores.size;
    let isChanged = false;
    for (let at = 0; at + 1 < pairs.length; at += 2) {
      const [score, member] = [scoreOf(pairs[at] ?? ''), pairs[at + 1] ?? ''];
      const known = found.scores.get(member);
      if (known === score || (isNew && known !== undefined)) continue;
      found.scores.set(member, score);
      isChanged = true;
    }
    if (!call.keyspace.has(key)) call.keyspace.put(key, found);
    if (isChanged) {
      found.order = undefined;
      call.changed();
    }
    return found.scores.size - before;
  },
  ZREM(call, key, ...members) {
    const found = call.keyspace.value(key, 'sorted');
    const gone = members.filter((member) => found?.scores.delete(member) === true);
    if (found !== undefined && gone.length > 0) found.order = undefined;
    if (found?.scores.size === 0) call.keyspace.delete(key);
    if (gone.length > 0) call.changed();
    return gone.length;
  },
  ZSCORE({ keyspace }, key, member = '') {
    const score = keyspace.value(key, 'sorted')?.scores.get(member);
    return score === undefined ? null : score === Number.POSITIVE_INFINITY ? 'inf' : String(score);
  },
  ZCARD: ({ keyspace }, key) => keyspace.value(key, 'sorted')?.scores.size ?? 0,
  ZRANGE(call, key, first = '', second = '', ...options) {
    const isBack = options.includes('REV');
    const [low, high] = isBack ? [second, first] : [first, second];
    const sorted = call.keyspace.value(key, 'sorted');
    const all = sorted?.order ?? [...(sorted?.scores ?? [])].sort(byScore);
    if (sorted !== undefined) sorted.order = all;
    const isOfScore = options.includes('BYSCORE');
    if (!isOfScore && !options.includes('BYLEX'))
      throw new TypeError('the model of Redis knows ZRANGE by score and by text alone');
    const found = all
      .filter(([member, score]) =>
        isOfScore
          ? isScored(score, low, true) && isScored(score, high, false)
          : isWithin(member, low, true) && isWithin(member, high, false),
      )
      .map(([member]) => member);
    if (isBack) found.reverse();
    const limit = options.indexOf('LIMIT');
    if (limit === -1) return found;
    const [offset, count] = [Number(options[limit + 1]), Number(options[limit + 2])];
    return found.slice(offset, offset + count);
  },
  ZREMRANGEBYLEX(call, key, low = '', high = '') {
    const found = (COMMANDS['ZRANGE']?.(call, key, low, high, 'BYLEX') ?? []) as readonly string[];
    return found.length === 0 ? 0 : call.keyspace.run('ZREM', [key, ...found]);
  },
  XLEN: ({ keyspace }, key) => keyspace.value(key, 'stream')?.entries.length ?? 0,
  XADD(call, key, ...rest) {
    const stream = call.keyspace.value(key, 'stream') ?? {
      type: 'stream' as const,
      entries: [],
      lastId: '0-0',
    };
    let most = Number.POSITIVE_INFINITY;
    let at = 0;
    if (rest[0]?.toUpperCase() === 'MAXLEN') {
      at = rest[1] === '=' ? 3 : 2;
      most = Number(rest[at - 1]);
    }
    const [asked = '*', ...fields] = rest.slice(at);
    let id = asked;
    if (asked === '*') {
      const [time, sequence] = partsOf(stream.lastId);
      const now = call.keyspace.now();
      id = now > time ? `${now}-0` : `${time}-${sequence + 1}`;
    }
    if (compareIds(id, stream.lastId) <= 0)
      throw new LuaError('ERR The ID specified in XADD is equal or smaller than the target stream top item');
    stream.lastId = id;
    stream.entries.push({ id, fields });
    if (stream.entries.length > most) stream.entries.splice(0, stream.entries.length - most);
    if (!call.keyspace.has(key)) call.keyspace.put(key, stream);
    const limit = most === Number.POSITIVE_INFINITY ? [] : ['MAXLEN', '=', String(most)];
    call.changed('XADD', key, ...limit, id, ...fields);
    return id;
  },
  XRANGE: (call, key, low = '-', high = '+', ...rest) => range(call, key, low, high, rest, false),
  XREVRANGE: (call, key, high = '+', low = '-', ...rest) => range(call, key, low, high, rest, true),
  XDEL(call, key, ...ids) {
    const stream = call.keyspace.value(key, 'stream');
    const before = stream?.entries.length ?? 0;
    if (stream !== undefined) stream.entries = stream.entries.filter(({ id }) => !ids.includes(id));
    const gone = before - (stream?.entries.length ?? 0);
    if (gone > 0) call.changed();
    return gone;
  },
  XTRIM(call, key, _minid, ...rest) {
    const stream = call.keyspace.value(key, 'stream');
    if (stream === undefined) return 0;
    const least = rest.at(-1) ?? '';
    const kept = stream.entries.findIndex(({ id }) => compareIds(id, least) >= 0);
    const gone = kept === -1 ? stream.entries.length : kept;
    stream.entries.splice(0, gone);
    if (gone > 0) call.changed();
    return gone;
  },
};
