import { clock } from '../../common/clock.ts';
import { createPayments } from '../../money/payment-reads.ts';
import type { MoneyRecords } from '../../money/record.ts';
import { CommandError, EXIT, type ExitCode, print, remark } from '../command.ts';
import { holdText } from './hold-text.ts';
import { type Listed, listed } from './list.ts';
import { withRecords } from './records.ts';
import { type Named, named, readNamed, textOf } from './show.ts';

/** How long the command waits for a gateway to settle it, in ms: longer than the lease under which another may hold it. */
const WAITED_MS = 30_000;
const LOOK_EVERY_MS = 250;

/** `pasarela payments settle`: makes the gateways ask about one payment now. */
export async function settlePayment(args: readonly string[]): Promise<ExitCode> {
  const { id, values } = readNamed(args, {});
  return withRecords(async (records) => {
    const client = typeof values.client === 'string' ? values.client : undefined;
    const before = await named(records, id, client);
    const isOpen = ({ state }: Listed) => state === 'UNKNOWN' || state === 'IN_FLIGHT';
    const { clientId } = before;
    // What is made due then belongs to the time before resume, and nobody asks about that by itself.
    const isAsked = isOpen(before.payment) && !(await records.isPutBack(clientId));
    if (isAsked) await records.hasten({ clientId, hash: before.record.hash });
    const payment = isAsked ? await looked(records, before, isOpen) : before.payment;
    if (values.json === true) print(JSON.stringify(payment));
    else for (const line of textOf(payment)) print(line);
    if (!isOpen(payment)) return EXIT.done;
    const holds = await records.held();
    for (const hold of holds) remark(holdText(hold));
    // Also where it was put back meanwhile.
    if (!isAsked || (await records.isPutBack(clientId))) {
      remark(NOBODY_ASKS);
      return EXIT.wrong;
    }
    const isStopped = holds.some(({ why }) => why === 'stopped');
    const later = isStopped ? ', and sends money out again once payments go on' : '';
    remark(
      `It is not settled. A running gateway with AUTH_MODE=service asks the service about it, or looks for it${later}; in passthrough its caller has to come back with its key.`,
    );
    return EXIT.wrong;
  });
}

const NOBODY_ASKS =
  'It is not settled, and no gateway asks about it while its record is put back. Run this again after pasarela payments resume --put-back.';

/** Waits until it is settled, for {@link WAITED_MS} at most. @throws CommandError if its record goes meanwhile */
async function looked(
  records: MoneyRecords,
  { clientId, payment: { id } }: Named,
  isOpen: (payment: Listed) => boolean,
): Promise<Listed> {
  const { byId } = createPayments(records);
  const until = clock.monotonic() + WAITED_MS;
  for (;;) {
    const record = await byId({ clientId, customerId: undefined }, id);
    const payment = record === undefined ? undefined : listed(clientId, record);
    if (payment === undefined) throw new CommandError(goneText(id));
    if (!isOpen(payment) || clock.monotonic() > until) return payment;
    await clock.sleep(LOOK_EVERY_MS);
  }
}

const goneText = (id: string): string =>
  `The payment "${id}" is no longer in the record. Where pasarela payments export has nothing_moved as the last line of this paymentId, its call has moved nothing, and its key was given back (docs/unknown-payments.md, "When another key may be used").`;
