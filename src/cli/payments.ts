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
import { listPayments } from './payments/list.ts';
import { withRecords } from './payments/records.ts';
import { settlePayment } from './payments/settle.ts';
import { showPayment } from './payments/show.ts';
import { verifyPayments } from './payments/verify.ts';

const VERBS = ['status', 'stop', 'resume', 'list', 'show', 'settle', 'export', 'verify'];

/** Shows the payments of the record and its journal, makes gateways settle one, and stops all payments or lets them go on. */
export const payments: Command = {
  help: `Usage: pasarela payments status
       pasarela payments stop
       pasarela payments resume
       pasarela payments list [--state …] [--operation …] [--from DATE] [--to DATE] [--customer ID] [--client ID] [--limit N] [--json]
       pasarela payments show ID [--client ID] [--json]
       pasarela payments settle ID [--client ID] [--json]
       pasarela payments export [--client ID] [--from DATE] [--to DATE] [--format jsonl|csv]
       pasarela payments export --follow --state FILE [--client ID] [--from DATE] [--format jsonl|csv]
       pasarela payments verify [--client ID [--anchor ID:DIGEST]]
       pasarela payments verify --file FILE

The record of payments keeps one key from paying twice. Where the gateway notices that it has been put back to an earlier state
(a backup, a Redis that was flushed, a folder that was moved), it holds all payments: a key of the time between would pay again.

  status   whether payments are held, since when, and how many at least are missing from the record
  stop     holds all payments until resume: every process refuses at once to send any, and to send any again. PAYMENTS=off does the
           same for a process from its start
  resume   lets payments go on. Where the record was put back, compare the transactions of that time with what callers hold before

  list     prints payments that were sent, the newest first, 50 unless --limit says otherwise. A line holds when it was asked for, the
           state, the operation, the amount, the id, and why it is refused or unknown. --state takes IN_FLIGHT, DONE, REFUSED and
           UNKNOWN, --operation MONEY_OUT, INTERNAL_TRANSACTION, PENNY_VALIDATION and REFUND, both comma-separated
  show     prints one payment, with its lines in the journal
  settle   has a running gateway ask the service about a payment now, and waits half a minute for what comes of it. It lets money
           out be sent again that was recorded before the record was put back. Nothing else is ever sent again

  pasarela payments list --state UNKNOWN --from 2026-11-01

  export   writes the journal of payments to standard output, one step of a payment a line, the oldest first. With --follow it goes
           on as lines are added, and keeps in FILE where it stands: started again, it repeats at most what was written last
  verify   follows the chain of the journal, tells the first line that does not hold, and prints an anchor: noted elsewhere, it
           finds out who has written the whole journal anew. With --file it verifies an export in JSON Lines, without the store

All read REDIS_URL and DATA_DIR, as the gateway has them, and run beside it. After resume they go on within ten seconds.

No key, name or account is printed. With --json each payment is one JSON object.

Exit codes: 0 done: payments are not held, are stopped or go on as asked, all lines hold, the payment is settled; 1 they are held, a line does not hold, the
payment is not settled or not there, or the record cannot be reached; 2 the command line is not understood.`,
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
