import { packed } from '../order-summary.ts';
import { RETENTION_MS } from '../record.ts';
import { partOf } from './keys.ts';

/** Ms of a day. */
export const DAY = 24 * 60 * 60 * 1000;

/**
 * Defines `index(day)`: where the hashes of records are found by the transactions that became known on this day. A hash in Redis
 * that is small takes a third of the room of as many keys; each goes as a whole, once its records have gone.
 *
 * In front of it: NOW, `base`, and the part as `part`.
 */
export const TRANSACTION_INDEX = `
  local today = math.floor(now / ${DAY})
  local function index(day) return base .. 'transactions:' .. string.format('%.0f', day) .. ':' .. part end`;

/**
 * For how many days back a transaction is looked for among those of other payments. Each day costs a payment some
 * microseconds of Redis. Answers are mixed up on the way, or by a cache, within hours.
 */
const DAYS_OF_ANSWERS = 2;

/**
 * Defines `named(id, part)`, which lets the record be found by its transaction, and `isAnothers(id, part)`: whether another record of
 * the last days is found by it. In front of it: NOW, HERE.
 */
export const NAMED = `
  local function isAnothers(id, part)
    ${TRANSACTION_INDEX}
    for day = today + 1, today - ${DAYS_OF_ANSWERS}, -1 do
      local found = redis.call('HGET', index(day), id)
      if found then return found ~= hash and redis.call('HEXISTS', base .. found, 'state') == 1 end
    end
    return false
  end
  local function named(id, part)
    ${TRANSACTION_INDEX}
    redis.call('HSET', index(today), id, hash)
    redis.call('PEXPIRE', index(today), ${RETENTION_MS + 2 * DAY})
  end`;

/** Returns the arguments of {@link NAMED}. */
export const transactionName = (id: string): [string, string] => [packed(id.toLowerCase()), partOf(id)];
