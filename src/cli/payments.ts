import type { Hold, MoneyRecords } from '../money/record.ts';
import {
  type Command,
  CommandError,
  EXIT,
  notAVerb,
  print,
  readArguments,
  refuseArguments,
} from './command.ts';
import { exportJournal } from './payments/export.ts';
import { PAYMENTS_HELP, PAYMENTS_HELP_ON } from './payments/help.ts';
import { listPayments } from './payments/list.ts';
import { withRecords } from './payments/records.ts';
import { settlePayment } from './payments/settle.ts';
import { showPayment } from './payments/show.ts';
import { verifyPayments } from './payments/verify.ts';

const VERBS = ['status', 'stop', 'resume', 'list', 'show', 'settle', 'export', 'verify'];

/** Shows the payments of the record and its journal, makes gateways settle one, and stops all payments or lets them go on. */
export const payments: Command = {
  help: PAYMENTS_HELP,
  helpOn: PAYMENTS_HELP_ON,
  async run(args) {
    const [what, ...rest] = args;
    if (what === 'export') return exportJournal(rest);
    if (what === 'verify') return verifyPayments(rest);
    if (what === 'list') return listPayments(rest);
    if (what === 'show') return showPayment(rest);
    if (what === 'settle') return settlePayment(rest);
    if (what !== 'status' && what !== 'stop' && what !== 'resume') {
      throw notAVerb(what, VERBS);
    }
    refuseArguments(readArguments(rest, {}).positionals);
    return withRecords(async (records) => {
      if (what === 'stop') await stop(records);
      const hold = await records.held();
      if (hold === undefined) {
        print('Payments are not held.');
        return EXIT.done;
      }
      print(textOf(hold));
      if (what === 'stop') return EXIT.done;
      if (what === 'status') return EXIT.wrong;
      await records.resume();
      print('They go on.');
      return EXIT.done;
    });
  },
};

/** @throws {CommandError} if it is not certain that they are stopped, and stay so */
async function stop(records: MoneyRecords): Promise<void> {
  try {
    await records.holdPayments();
  } catch (cause) {
    const known = await records.held().catch(() => undefined);
    if (known === undefined) throw cause;
    const advice =
      'A failover may forget it while a replica is away: stop them again once /readyz says nothing of replicas.';
    throw new CommandError(`${textOf(known)} ${advice}`, { cause });
  }
}

const textOf = ({ why, since, missing }: Hold): string => {
  const held = `Payments have been held since ${new Date(since).toISOString()}`;
  if (why !== 'put-back') return `${held}: an operator has stopped them.`;
  return `${held}: their record was put back. Missing from it: ${missing === 0 ? 'an unknown number' : `${missing} or more`}.`;
};
