import { RETENTION_DAYS } from '../../money/record.ts';

const WHERE = `Environment:

  REDIS_URL, DATA_DIR  where the record of payments is: as the gateway has them. The command runs beside the gateway, on the same
                       machine where the record is in DATA_DIR`;
const CODES = '2 the command line is not understood.';
const CLIENT = '--client ID        of one client of the service; default all whose payments the record has';
const ONE = `${CLIENT}
  --json             one JSON object`;
const DATES = `--from DATE        only what was asked for at that time or later: 2026-11-01 (midnight UTC) or 2026-11-01T00:00:00-06:00
  --to DATE          only what was asked for before that time`;

/** The whole text of `pasarela payments --help`. */
export const PAYMENTS_HELP = `Usage: pasarela payments status | stop | resume
       pasarela payments list [options]
       pasarela payments show ID [options]
       pasarela payments settle ID [options]
       pasarela payments export [options]
       pasarela payments verify [options]

Works on the record of payments, in which the gateway keeps what became of each, and on its journal, which has a line for each
step. It sends no payment by itself.

  status   tells whether payments are held, since when and why
  stop     holds all payments of all processes at once, for an emergency
  resume   lets payments go on
  list     prints payments, the newest first, by state, operation, time or customer
  show     prints one payment, with its lines in the journal
  settle   has the gateway send money out again at once under its key, or look for what became of another payment
  export   writes the journal as JSON Lines or CSV
  verify   proves that no line of the journal was changed or taken out

pasarela payments <verb> --help has the options of each.

Examples:

  pasarela payments status
  pasarela payments list --state UNKNOWN,IN_FLIGHT --from 2026-11-01
  pasarela payments show q3Zk0S9h2Xc6uVn1yLr8TgEw5JbPaMdQfRzHsKoBvN4
  pasarela payments export --from 2026-11-01T00:00:00-06:00 --to 2026-12-01T00:00:00-06:00 --format csv > november.csv

${WHERE}

No key, name or account number is printed.

Exit codes: 0 done; 1 payments are held, a line does not hold, a payment is not settled or not there, or the record cannot be
reached; ${CODES}`;

const STATUS_HELP = `Usage: pasarela payments status

Tells whether payments are held, since when, and why: because an operator has stopped them, or because the record was put back to
an earlier state (a backup, a Redis that was flushed, a folder that was moved), with the time of the last line that the copy had, from
which on payments may be missing, and up to how many are. A key of one that is missing would pay again, so that the gateway sends nothing
until resume. Where no gateway has found that, and the counts in DATA_DIR show it, it says so and changes nothing: they may be those of
another gateway.

Example:

  pasarela payments status || echo 'payments are held'

${WHERE}

Exit codes: 0 payments are not held; 1 they are held, or the record cannot be reached; ${CODES}`;

const STOP_HELP = `Usage: pasarela payments stop

Holds all payments in every process that shares the record, without a restart, until pasarela payments resume. Each refuses at once
to send a new one (PAYMENTS_STOPPED), and sends none again: a caller that comes back with the key of one that was sent gets
OutcomeUnknown. Settled payments are answered as ever. A request that has left is not called back, nor for OPERATION_TIMEOUT_MS one
that waits for a connection. PAYMENTS=off does the same for one process from its start.

A stop makes no payment certain. Unknown money out waits, and resume has gateways send it again: do not pay it by hand meanwhile, or
both are paid (docs/unknown-payments.md, "When another key may be used").

Example:

  pasarela payments stop && pasarela payments status

${WHERE}

Exit codes: 0 they are stopped, on every replica too; 1 not all of that is certain: some may go on for up to ten seconds, a failover
may forget the stop, or the record cannot be reached. Run it again until it ends with 0; ${CODES}`;

const RESUME_HELP = `Usage: pasarela payments resume [--put-back]

Lets payments go on, in every process within ten seconds. Run it again where it fails: until it ends with 0, payments of some
clients may be held. Gateways then send unknown money out younger than 23 hours again, under its key, within minutes: first be sure
that nobody has paid it in another way (payments list shows it). Where the record was put back, it changes nothing without --put-back, and ends with 1: first compare the
transactions since the time that it prints with what callers hold, and have callers drop the keys of payments that were made
(docs/redis.md, "When a record was put back").

  --put-back  you have compared: payments go on also where their record was put back

Example:

  pasarela payments resume

${WHERE}

Exit codes: 0 they go on, or were not held; 1 their record was put back, and --put-back was not given, or the record cannot be reached; ${CODES}`;

const LIST_HELP = `Usage: pasarela payments list [--state STATES] [--operation OPERATIONS] [--from DATE] [--to DATE] [--customer ID]
                              [--client ID] [--limit N] [--json]

Prints payments, the newest first. A line holds when it was asked for, the state, the operation, the amount, the id, and why it is
refused or unknown. A payment is in the list once it was sent, for ${RETENTION_DAYS} days after that or after its answer was stored. A page of 100 is
read at a time; Redis has 2 s for each reply. While payments are held, says so on standard error: where the record was put back,
some payments may be missing.

Options:

  --state STATES     of IN_FLIGHT, DONE, REFUSED and UNKNOWN, comma-separated; default all
  --operation OPERATIONS
                     of MONEY_OUT, INTERNAL_TRANSACTION, PENNY_VALIDATION and REFUND, comma-separated; default all
  ${DATES}
  --customer ID      asked for by callers narrowed to this customer; not what others asked for of its accounts
  ${CLIENT}
  --limit N          how many at most; default 50
  --json             one JSON object per line

Examples:

  pasarela payments list
  pasarela payments list --state UNKNOWN,IN_FLIGHT --operation MONEY_OUT --from 2026-11-01

${WHERE}

Exit codes: 0 done; 1 the record cannot be reached, or does not know the client; ${CODES}`;

const SHOW_HELP = `Usage: pasarela payments show ID [--client ID] [--json]

Prints one payment, by the id that list prints, or by the UUID of the transaction that it made. Shown are state, amount,
instruments, times, who asked, and for which customer, why it is refused or unknown, until when it may be sent again and is
looked for; the credit that a refund returns (originalTransactionId), unless the service has refused it, or it is done by an
answer that does not name the credit; and a line for each of its steps in the journal. It is found for ${RETENTION_DAYS} days
after it was sent, or after its answer was stored: settle does not prolong that. Its lines are kept for JOURNAL_RETENTION:
export has those, also of an earlier payment under the same key, whose record is gone.

Options:

  ${ONE}, with the steps in journal

Example:

  pasarela payments show q3Zk0S9h2Xc6uVn1yLr8TgEw5JbPaMdQfRzHsKoBvN4 --json | jq .journal

${WHERE}

Exit codes: 0 done; 1 there is no such payment, or the record cannot be reached; ${CODES}`;

const SETTLE_HELP = `Usage: pasarela payments settle ID [--client ID] [--json]

Makes a payment, named as for show, due now for a running gateway with AUTH_MODE=service, and waits half a minute for what comes of
it. It sends money out younger than 23 h again under its key, also what a put-back record held; it sends nothing else, and nothing
at all while an operator has stopped payments. Any other payment is looked for, one older than 48 h until one look has read all that
may be it. In passthrough the caller has to come back with its key.

After the record was put back, settle also lets evidence settle the payment: first look whether a movement like it may be that of a
payment which the record has forgotten. While payments are held for that, it changes nothing, as no gateway asks.

Options:

  ${ONE}

Example:

  pasarela payments settle q3Zk0S9h2Xc6uVn1yLr8TgEw5JbPaMdQfRzHsKoBvN4

${WHERE}

Exit codes: 0 it is settled: done or refused; 1 it is not, there is no such payment, or the record cannot be reached;
${CODES}`;

const EXPORT_HELP = `Usage: pasarela payments export [--client ID] [--from DATE] [--to DATE] [--format jsonl|csv]
       pasarela payments export --follow --state FILE [--client ID] [--from DATE] [--format jsonl|csv]

Writes the journal to standard output, one step of a payment a line, the oldest first. Lines are kept for JOURNAL_RETENTION, 400 days
unless the gateway says otherwise: what is older is not written. pasarela payments verify can read an export in JSON Lines without
the record. While the record has been put back, says so on standard error: some lines may be missing.

Options:

  --from DATE        begins with the lines of that time: 2026-11-01 (midnight UTC) or 2026-11-01T00:00:00-06:00
  --to DATE          ends before the lines of that time
  --format FORMAT    jsonl (JSON Lines) or csv, for spreadsheets; default jsonl
  ${CLIENT}
  --follow           goes on as lines are added, until Ctrl-C; for one client
  --state FILE       with --follow: keeps there where it stands. Started again, it goes on, and repeats at most what was written last

Examples:

  pasarela payments export --from 2026-11-01T00:00:00-06:00 --to 2026-12-01T00:00:00-06:00 --format csv > november.csv
  pasarela payments export --follow --state journal.place >> journal.jsonl

${WHERE}

Exit codes: 0 done, or ended by a signal; 1 the record cannot be reached, or the journal no longer holds the line where it ended;
${CODES}`;

const VERIFY_HELP = `Usage: pasarela payments verify [--client ID [--anchor ID:DIGEST]]
       pasarela payments verify --file FILE

Follows the chain of the journal, in which each line bears a digest of itself and of the line before: tells the first line that
does not hold, and prints an anchor. Noted elsewhere and handed in again, the anchor finds out who has written the whole journal
anew.

Options:

  ${CLIENT}
  --anchor ID:DIGEST what an earlier verify of this client has printed: it has to be in the chain still
  --file FILE        verifies an export in JSON Lines instead, without the record

Examples:

  pasarela payments verify
  pasarela payments export > journal.jsonl && pasarela payments verify --file journal.jsonl

${WHERE}

Exit codes: 0 all lines hold; 1 a line does not hold, lines are missing, or the record cannot be reached; ${CODES}`;

/** The same of `pasarela payments <verb> --help`. */
export const PAYMENTS_HELP_ON: Readonly<Record<string, string>> = {
  status: STATUS_HELP,
  stop: STOP_HELP,
  resume: RESUME_HELP,
  list: LIST_HELP,
  show: SHOW_HELP,
  settle: SETTLE_HELP,
  export: EXPORT_HELP,
  verify: VERIFY_HELP,
};
