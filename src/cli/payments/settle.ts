import { clock } from '../../common/clock.ts';
import type { MoneyRecords } from '../../money/record.ts';
import { EXIT, type ExitCode, print, remark } from '../command.ts';
import { holdText } from './hold-text.ts';
import type { Listed } from './list.ts';
import { withRecords } from './records.ts';
import { named, readNamed, textOf } from './show.ts';

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
    if (isOpen(before.payment)) await records.hasten({ clientId: before.clientId, hash: before.record.hash });
    const payment = isOpen(before.payment) ? await looked(records, id, client, isOpen) : before.payment;
    if (values.json === true) print(JSON.stringify(payment));
    else for (const line of textOf(payment)) print(line);
    if (!isOpen(payment)) return EXIT.done;
    const holds = await records.held();
    for (const hold of holds) remark(holdText(hold));
    const isStopped = holds.some(({ why }) => why === 'stopped');
    const later = isStopped ? ', and sends money out again once payments go on' : '';
    remark(
      `It is not settled. A running gateway with AUTH_MODE=service asks the service about it, or looks for it${later}; in passthrough its caller has to come back with its key.`,
    );
    return EXIT.wrong;
  });
}

/** Waits until it is settled, for {@link WAITED_MS} at most. */
async function looked(
  records: MoneyRecords,
  id: string,
  client: string | undefined,
  isOpen: (payment: Listed) => boolean,
): Promise<Listed> {
  const until = clock.monotonic() + WAITED_MS;
  for (;;) {
    const { payment } = await named(records, id, client);
    if (!isOpen(payment) || clock.monotonic() > until) return payment;
    await clock.sleep(LOOK_EVERY_MS);
  }
}
