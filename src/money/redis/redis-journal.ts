import type { RedisClient } from '../../redis/connection.ts';
import { DIGEST_DIGITS } from '../journal/journal.ts';
import type { JournalHead, JournalLine } from '../journal/store.ts';
import { keysOf } from './keys.ts';

/**
 * How many lines a payment that begins cuts off at most. It is more than a payment writes, so that a journal that is too long
 * shrinks.
 */
const CUT_AT_ONCE = 16;

/**
 * Defines `journal(text)`, which adds a line to the journal of the client and returns its id, and `cut(retention)`, which takes
 * off the lines that are older. The stream holds of each line its digest and its text, in one field; the hash beside it what
 * {@link JournalHead} says. Both are in the client's slot.
 *
 * In front of it: NOW, and `base`, the prefix of the client's keys.
 */
export const JOURNAL = `
  local stream, head = base .. 'journal', base .. 'journal-head'
  local function follows(last)
    local ms, number = string.match(last or '', '^(%d+)-(%d+)$')
    if not ms or tonumber(ms) < now then return string.format('%.0f-0', now) end
    return ms .. '-' .. string.format('%.0f', number + 1)
  end
  local function journal(text)
    local digest, last, written = unpack(redis.call('HMGET', head, 'digest', 'last', 'written'))
    digest = digest or ''
    local id = follows(last)
    local function add()
      local sum = string.sub(redis.sha1hex(digest .. ' ' .. id .. ' ' .. text), 1, ${DIGEST_DIGITS})
      local added = redis.pcall('XADD', stream, id, 'l', sum .. text)
      return type(added) == 'string' and sum
    end
    local sum = add()
    if not sum then
      -- Somebody has changed the head: the payment is worth more than the chain, which shows it.
      local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
      id = follows(newest and newest[1])
      sum = add()
    end
    redis.call('HSET', head, 'digest', sum or digest, 'last', id, 'written', string.format('%.0f', (written or 0) + 1))
    return id
  end
  local function cut(retention)
    local old = redis.call('XRANGE', stream, '-', '(' .. string.format('%.0f', now - retention), 'COUNT', ${CUT_AT_ONCE})
    if #old > 0 then
      local last = old[#old]
      redis.call('HINCRBY', head, 'cut', #old)
      redis.call('HSET', head, 'base', string.sub(last[2][2], 1, ${DIGEST_DIGITS}))
      for _, line in ipairs(old) do redis.call('XDEL', stream, line[1]) end
    end
    redis.call('PEXPIRE', stream, string.format('%.0f', 2 * retention))
    redis.call('PEXPIRE', head, string.format('%.0f', 2 * retention))
  end`;

/**
 * Defines `lineOf(line, past)`, the id of the line that began the payment of a record with these fields, and `begun(line)`, what that
 * line says of it, as JSON; nothing where there is none. In front of it: `base`.
 */
export const JOURNAL_ASKED = `
  local function lineOf(line, past) return line or (past and string.match(past, '^[%d-]+')) end
  local function begun(line)
    local found = line and redis.call('XRANGE', base .. 'journal', line, line)[1]
    return found and string.sub(found[2][2], ${DIGEST_DIGITS + 2})
  end`;

/** Reads the journals that the scripts write. */
export class RedisJournal {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async head(clientId: string): Promise<JournalHead> {
    const [written, cut, base, last, digest] = await this.#redis.hmget(
      `${keysOf(clientId)}journal-head`,
      ...['written', 'cut', 'base', 'last', 'digest'],
    );
    return {
      written: Number(written ?? 0),
      cut: Number(cut ?? 0),
      base: base ?? '',
      last: last ?? '',
      digest: digest ?? '',
    };
  }

  async read(clientId: string, after: string | undefined, limit: number): Promise<JournalLine[]> {
    const from = after === undefined ? '-' : `(${after}`;
    const found = await this.#redis.xrange(`${keysOf(clientId)}journal`, from, '+', 'COUNT', limit);
    return found.map(lineOf);
  }

  lines(clientId: string, ids: readonly string[]): Promise<(JournalLine | undefined)[]> {
    return Promise.all(
      ids.map(async (id) => {
        const [found] = await this.#redis.xrange(`${keysOf(clientId)}journal`, id, id);
        return found === undefined ? undefined : lineOf(found);
      }),
    );
  }
}

function lineOf([id, [, kept = '']]: [id: string, fields: string[]]): JournalLine {
  return { id, digest: kept.slice(0, DIGEST_DIGITS), text: kept.slice(DIGEST_DIGITS) };
}
