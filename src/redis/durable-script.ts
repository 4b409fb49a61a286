import { type Primary, REPLICATION_IN_LUA } from './replication.ts';
import { type Script, script } from './script.ts';

/**
 * Makes a Lua function one that `DurableWrites` runs. It may be run several times for one write: the second time it
 * has to do nothing but repeat its reply, and may write something harmless.
 */
export function durableScript(lua: string): Script {
  return script(`
    local function write() ${lua}
    end
    local reply = write()
    ${REPLICATION_IN_LUA}
    return {reply or false, replid, replicas, lately, syncs, former}`);
}

/** The reply of a durable script: its own, and what the server said of its replicas in the same step. */
export interface DurableAnswer {
  readonly reply: unknown;
  readonly primary: Primary;
}

/** @throws {TypeError} for the reply of another script */
export function answerOf(reply: unknown): DurableAnswer {
  if (!Array.isArray(reply)) throw new TypeError('a durable script returned no list');
  const [own, replid, replicas, lately, syncs, former] = reply;
  return {
    reply: own,
    primary: {
      replid: String(replid),
      replicas: Number(replicas),
      lately: Number(lately),
      syncs: Number(syncs),
      former: String(former),
    },
  };
}
