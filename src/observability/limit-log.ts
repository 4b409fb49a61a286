import type { Logger } from '../common/logger.ts';
import { createCountedLines } from '../common/rare-lines.ts';
import type { Full, Limit } from '../common/refusals.ts';
import { toldOfGroup } from '../operation/caller-keys.ts';

/**
 * Told of each operation, stream or body that is refused: by which limit, and whose it is, in the words of caller-keys.ts; of an operation
 * also what was full.
 */
export type LimitLog = (limit: Limit, group: string, full?: Full) => void;

/**
 * Makes the function that logs whose operations, streams and bodies are refused: one line a minute for each limit and client, of operations
 * for each `full` too. `refused` of a line counts the refusals since the last one.
 */
export function createLimitLog(logger: Logger): LimitLog {
  const count = createCountedLines();
  return (limit, group, full) => {
    const told = { limit, ...(full === undefined ? {} : { full }), ...toldOfGroup(group) };
    // Callers and addresses may be many: those that a line does not tell apart share it.
    count(JSON.stringify(told), (refused) => {
      logger.warn({ ...told, refused }, 'requests are refused, as a limit is reached');
    });
  };
}
