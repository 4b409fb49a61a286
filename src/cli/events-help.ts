import { EVENT_TYPES } from '../events/log.ts';
import { FORWARD_HELP } from './forward/command.ts';

const TYPES = `--types TYPES       of ${EVENT_TYPES.join(', ')}, comma-separated; default all`;
const URL_AND_JSON = `--url URL           address of the graph; default that of the gateway on this machine, from HOST and PORT
  --json              one JSON object per line`;
const FILTERS = `--from TIME         only events received at that time or later: 2026-11-17 (midnight UTC) or 2026-11-17T09:30:00-06:00
  --to TIME           only events received before that time
  --transaction ID    only events that name this transaction
  --tracking-key KEY  only events that name this SPEI tracking key
  --account ID        only credits to the CLABE of this account, by its UUID. Standard error tells the CLABE and the instrument.
                      In service mode the token needs the scope graph:read as well`;
const LINE = `A line holds the time of arrival (UTC), the type, what it says of money or of the receipt, the id, the transaction of a
credit (- of another event) and the cursor; no name and no account. A terminal shows as much of it as fits on one line. With
--json each line is one JSON object, as the graph names its fields.`;
const TOKEN = `Environment:

  PASARELA_TOKEN      an access token that the gateway accepts: with AUTH_MODE=service one of the identity provider's with the
                      scope events:read, otherwise one of the service's. npm start prints that of the demo.
                      PASARELA_TOKEN_FILE, PASARELA_TOKEN_COMMAND and PASARELA_TOKEN_URL renew it (docs/configuration.md)
  HOST, PORT          where the gateway listens, if not on 127.0.0.1:4000`;

/** The whole text of `pasarela events --help`. */
export const EVENTS_HELP = `Usage: pasarela events tail [options]
       pasarela events replay [options]
       pasarela events search [options]
       pasarela events forward --to URL [options]
       pasarela events forward status | retry

Reads the events of a running gateway: credits (MONEY_IN), receipts (CEP) and changes of status (STATUS_UPDATE). It asks the
graph, so that it shows what a client with the same token would see.

  tail     prints events as they arrive, until Ctrl-C
  replay   prints what the log holds, from its beginning or from a cursor on, and ends
  search   finds events by time, transaction, tracking key or account, and says how far back the log reaches
  forward  brings each event to receivers of yours, in order, and goes on where it was

pasarela events <verb> --help has the options of each.

Examples:

  pasarela events tail --types MONEY_IN
  pasarela events replay --from 2026-11-17 --json | jq -r .amount.amount
  pasarela events search --tracking-key 2026111790646AB12CD3
  pasarela events forward --to file:///var/lib/pasarela/events

${TOKEN}

Exit codes: 0 done, or ended by a signal; 1 the gateway cannot be asked, or events are missing; 2 the command line is not
understood.`;

const TAIL_HELP = `Usage: pasarela events tail [--types TYPES] [--after CURSOR] [--url URL] [--json]

Prints events as they arrive, from now on or since CURSOR, until Ctrl-C. It connects again by itself and goes on where it was.
Standard error tells the cursor that it begins after, each new connection, and why none comes about.

${LINE}

Options:

  ${TYPES}
  --after CURSOR      begins after the event of this cursor, the last word of its line; default what comes from now on
  ${URL_AND_JSON}

Examples:

  pasarela events tail
  pasarela events tail --types MONEY_IN,STATUS_UPDATE --json >> events.jsonl
  pasarela events tail --url https://graph.example.mx/graphql --after CURSOR

${TOKEN}

Exit codes: 0 ended by a signal; 1 the gateway refuses the token, or no longer holds what followed CURSOR (EVENTS_GAP: the
message names the cursor to start again from); 2 the command line is not understood.`;

const REPLAY_HELP = `Usage: pasarela events replay [--types TYPES] [--after CURSOR] [--from TIME] [--to TIME] [--transaction ID]
                              [--tracking-key KEY] [--account ID] [--url URL] [--json]

Prints what the log holds, the oldest event first, up to now, and ends. Standard error counts the events, and tells at the end the
cursor of the last one, for the next --after.

${LINE}

Options:

  ${TYPES}
  --after CURSOR      only events behind that of this cursor; default from the beginning of the log
  ${FILTERS}
  ${URL_AND_JSON}

Examples:

  pasarela events replay
  pasarela events replay --from 2026-11-17 --to 2026-11-18 --types MONEY_IN
  pasarela events replay --json | jq -r 'select(.type == "MONEY_IN") | .amount.amount'

${TOKEN}

Exit codes: 0 done; 1 the gateway cannot be asked, or no longer holds what followed CURSOR (EVENTS_GAP); 2 the command line is
not understood.`;

const SEARCH_HELP = `Usage: pasarela events search [--from TIME] [--to TIME] [--transaction ID] [--tracking-key KEY] [--account ID]
                              [--types TYPES] [--url URL] [--json]

Finds events of the past, by at least one of --from, --to, --transaction, --tracking-key and --account; all that are given have to
hold.
Standard error tells how many there are, how far back the log reaches, when it began, and its epoch: so "nothing found" can be
told from "no longer kept", and two processes that share a log from two that do not. A token narrowed to a customer is told no
epoch. What the log has lost from its end, as in a failover, it does not know (docs/missing-events.md).

${LINE}

Options:

  ${FILTERS}
  ${TYPES}
  ${URL_AND_JSON}

Examples:

  pasarela events search --tracking-key 2026111790646AB12CD3
  pasarela events search --transaction 5f0c7f5e-3f1f-4d4e-9d2c-0a4b6d1f2c11 --json
  pasarela events search --from 2026-11-17T09:00:00-06:00 --to 2026-11-17T10:00:00-06:00 --types MONEY_IN
  pasarela events search --account 0b7c2f5e-8d1a-4c43-9a36-5e2f1d7c9b10 --from 2026-11-17T09:00:00-06:00

${TOKEN}

Exit codes: 0 done, also where nothing was found; 1 the gateway cannot be asked; 2 the command line is not understood.`;

/** The same of `pasarela events <verb> --help`. */
export const EVENTS_HELP_ON: Readonly<Record<string, string>> = {
  tail: TAIL_HELP,
  replay: REPLAY_HELP,
  search: SEARCH_HELP,
  forward: FORWARD_HELP,
};
