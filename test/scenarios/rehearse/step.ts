import type { Stage } from './stage.ts';

/** One thing that happens in the night. */
export interface Step {
  readonly name: string;
  /** What is done, in a sentence for the report. */
  readonly done: string;
  run(stage: Stage): Promise<void>;
}

/** How long a trouble lasts, in milliseconds. */
export const LASTS_MS = 8_000;

/** Ends one gateway, then the other; each is started again before. */
export async function restartAll({ members }: Stage): Promise<void> {
  for (const member of members) {
    await member.end('SIGTERM');
    await member.start();
  }
}

/** The password that Redis knows the gateways by. */
export const passwordOf = ({ environment }: Stage): string =>
  /gateway:(\w+)@/.exec(environment['REDIS_URL'] ?? '')?.[1] ?? '';
