import type { RedisClient } from '../../redis/connection.ts';
import { runScript, script } from '../../redis/script.ts';
import type { CreditRefund } from '../record-parts.ts';
import { keysOf, UNMOVED } from './keys.ts';

/** The key of the name of the record whose refund of a credit was the last to be sent, for as long as that is the only one. */
export const refundKey = (clientId: string, credit: string): string =>
  `${keysOf(clientId)}refund:${credit.toLowerCase()}`;

/** The same for as long as that record is kept, and of one that is done whatever was sent later. */
const refundedKey = (clientId: string, credit: string): string =>
  `${keysOf(clientId)}refunded:${credit.toLowerCase()}`;

/**
 * Defines `refundOf(name)`, the hash of the record whose refund of a credit may have moved, and `done` or `open`; nothing where there is none.
 * The name ends by itself, and counts for nothing once its record is gone or refused. In front of it: `base`.
 */
export const REFUND_OF = `
  local function refundOf(name)
    local hash = redis.call('GET', name)
    if not hash then return nil end
    local state, kind = unpack(redis.call('HMGET', base .. hash, 'state', 'kind'))
    if state ~= 'sent' and (state ~= 'answered' or kind == 'refused') then return nil end
    return hash, state == 'answered' and kind == 'done' and 'done' or 'open'
  end`;

/** Defines `nameRefund(credit, retention)`, which names this record for as long as it is kept. In front of it: HERE, REFUND_OF. */
export const NAME_REFUND = `
  local function nameRefund(credit, retention)
    local name = base .. 'refunded:' .. string.lower(credit)
    local _, how = refundOf(name)
    if how ~= 'done' then redis.call('SET', name, hash, 'PX', retention) end
  end`;

/** Takes the names of a record that is given back: its key may be used next for the refund of another credit. In front of it: HERE. */
export const UNNAME_REFUND = `
  for _, kind in ipairs({'refund:', 'refunded:'}) do
    local name = base .. kind .. string.lower(redis.call('HGET', key, 'original') or '')
    if redis.call('GET', name) == hash then redis.call('DEL', name) end
  end`;

/** KEYS: the name of the refund of a credit. Returns `done` or `open`; nothing where none may have moved. */
const FIND_REFUND = script(`
  local base = string.match(KEYS[1], '^(.*:)refunded:')
  ${UNMOVED} ${REFUND_OF}
  local _, how = refundOf(KEYS[1])
  return how`);

/** As `MoneyRecords` has it. */
export async function refundOf(
  redis: RedisClient,
  clientId: string,
  credit: string,
): Promise<CreditRefund | undefined> {
  const found = await runScript(redis, FIND_REFUND, [refundedKey(clientId, credit)], []);
  return found === 'done' || found === 'open' ? found : undefined;
}
