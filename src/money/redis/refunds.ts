import type { RedisClient } from '../../redis/connection.ts';
import { runScript, script } from '../../redis/script.ts';
import type { CreditRefund } from '../record-parts.ts';
import { keysOf, UNMOVED } from './keys.ts';

/** The key of the list of records that have sent a refund of a credit: `<hash>=<when, in ms>`, with commas between. */
export const refundsKey = (clientId: string, credit: string): string =>
  `${keysOf(clientId)}refund:${credit.toLowerCase()}`;

/**
 * Defines `refunds(name)`, the records of a credit's list whose refund may have moved: of each its hash, when it was sent, and `done` or
 * `open`; and `keepRefunds(name, all)`, which writes the list again, for as long as it was kept. In front of it: `base`.
 */
export const REFUNDS = `
  local function refunds(name)
    local found = {}
    for other, at in string.gmatch(redis.call('GET', name) or '', '([^,=]+)=(%d+)') do
      local state, kind = unpack(redis.call('HMGET', base .. other, 'state', 'kind'))
      if state == 'sent' or (state == 'answered' and kind ~= 'refused') then
        found[#found + 1] = {other, tonumber(at), state == 'answered' and kind == 'done' and 'done' or 'open'}
      end
    end
    return found
  end
  local function keepRefunds(name, all)
    local texts = {}
    for index, one in ipairs(all) do texts[index] = one[1] .. '=' .. string.format('%.0f', one[2]) end
    if #texts == 0 then redis.call('DEL', name) else redis.call('SET', name, table.concat(texts, ','), 'KEEPTTL') end
  end`;

/**
 * Defines `addRefund(name, retention, only)`, which adds this record to the list of its credit, and does not where another one has sent a
 * refund that may have moved for less than `only`, in ms. In front of it: NOW, HERE, REFUNDS.
 */
export const ADD_REFUND = `
  local function addRefund(name, retention, only)
    local all = {{hash, now}}
    for _, one in ipairs(refunds(name)) do
      if one[1] ~= hash then
        if now - one[2] < only then return false end
        all[#all + 1] = one
      end
    end
    keepRefunds(name, all)
    redis.call('PEXPIRE', name, retention)
    return true
  end`;

/** Takes a record that is given back out of its list: its key may be used next for the refund of another credit. In front of it: HERE, REFUNDS. */
export const TAKE_REFUND = `
  local original = redis.call('HGET', key, 'original')
  if original then
    local name, left = base .. 'refund:' .. string.lower(original), {}
    for _, one in ipairs(refunds(name)) do if one[1] ~= hash then left[#left + 1] = one end end
    keepRefunds(name, left)
  end`;

/** KEYS: the list of a credit. Returns `done` where a refund is, else `open` where one may have moved; nothing without one. */
const FIND_REFUND = script(`
  local base = string.match(KEYS[1], '^(.*:)refund:')
  ${UNMOVED} ${REFUNDS}
  local how
  for _, one in ipairs(refunds(KEYS[1])) do if how ~= 'done' then how = one[3] end end
  return how`);

/** As `MoneyRecords` has it. */
export async function refundOf(
  redis: RedisClient,
  clientId: string,
  credit: string,
): Promise<CreditRefund | undefined> {
  const found = await runScript(redis, FIND_REFUND, [refundsKey(clientId, credit)], []);
  return found === 'done' || found === 'open' ? found : undefined;
}
