import type { Logger } from '../common/logger.ts';
import { createRareLines } from '../common/rare-lines.ts';
import type { Limit } from '../common/refusals.ts';
import { toldOfGroup } from '../operation/caller-keys.ts';

/** Told of each operation, stream or body that is refused: by which limit, and whose it is, in the words of caller-keys.ts. */
export type LimitLog = (limit: Limit, group: string) => void;

/**
 * Makes the function that logs whose operations, streams and bodies are refused: one line a minute for each limit and client. `refused`
 * of a line counts the refusals since the last one.
 */
export function createLimitLog(logger: Logger): LimitLog {
  const linesOf = createRareLines();
  return (limit, group) => {
    const told = toldOfGroup(group);
    // Callers and addresses may be many: those that a line does not tell apart share it.
    const refused = linesOf(`${limit} ${told.of} ${told.clientId}`);
    if (refused === undefined) return;
    logger.warn({ limit, ...told, refused }, 'requests are refused, as a limit is reached');
  };
}
