import type { Asked, Told } from './app.ts';
import type { Movement } from './payments.ts';
import type { Run } from './scenario.ts';

/**
 * Compares what the app was told with what the ledger shows in the end. Pure.
 *
 * @returns every lie in a sentence; none when the gateway was honest.
 */
export function lies(run: Run, asked: readonly Asked[], movements: readonly Movement[]): string[] {
  const found = new Set<string>();
  if (movements.length > 1) found.add(`moved ${movements.length} times`);
  let movedBefore = 0;
  let done = false;
  for (const { told, movedAfter } of asked) {
    for (const one of told) {
      const lie = lieOf(one, movements, movedAfter);
      if (lie !== undefined) found.add(lie);
      // Of two calls at once, one may have moved the money after the other had rightly said that nothing moved.
      const movedByThen = told.length === 1 ? movedAfter : movedBefore;
      // Whoever cannot read the record says that this call has moved nothing, and nothing of the calls before it.
      const movedUnread = one.kind === 'nothing-moved' && one.code === 'STORE_UNAVAILABLE' ? movedBefore : 0;
      if (one.kind === 'nothing-moved' && movedByThen > movedUnread) {
        found.add(`said that nothing moved (${one.code}) though the money had moved`);
      }
      if (done && !isReplay(one)) found.add(`said ${one.kind} after it had said done`);
    }
    done ||= told.some(({ kind }) => kind === 'done');
    movedBefore = movedAfter;
  }
  if (isStuck(run, asked)) found.add('gave money out up, though its upstream key settles it');
  return [...found];
}

function lieOf(told: Told, movements: readonly Movement[], movedAfter: number): string | undefined {
  if (told.kind === 'refused' && movements.length > 0)
    return `said refused (${told.code}) for money that moved`;
  if (told.kind !== 'done') return undefined;
  if (movements.length === 0) return 'said done for money that did not move';
  if (movedAfter === 0) return 'said done before the money had moved';
  const known = movements.some(({ transactionId }) => transactionId === told.transactionId);
  return known ? undefined : 'said done and named another transaction';
}

const isReplay = (told: Told): boolean =>
  told.kind === 'lost' || told.kind === 'not-identified' || (told.kind === 'done' && told.replayed);

/** A 409 to a first request stands for a record that was lost: only then must money out stay unknown for good. */
function isStuck({ mutation, faults }: Run, asked: readonly Asked[]): boolean {
  const lostRecord = faults.some(
    (fault) => typeof fault === 'object' && 'status' in fault && fault.status === 409,
  );
  return (
    mutation === 'createMoneyOut' &&
    !lostRecord &&
    asked.some(({ told }) => told.some((one) => one.kind === 'unknown' && !one.safeToRetry))
  );
}
