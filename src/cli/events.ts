import { z } from 'zod';
import { onToldToEnd } from '../app/lifecycle.ts';
import { clock } from '../common/clock.ts';
import { begunAt, epochOf } from '../events/cursor.ts';
import {
  type Colour,
  type Command,
  CommandError,
  coloured,
  EXIT,
  notAVerb,
  printable,
  printableLine,
  readArguments,
  refuseArguments,
  remark,
  UsageError,
} from './command.ts';
import { EVENTS_HELP, EVENTS_HELP_ON } from './events-help.ts';
import { runForward } from './forward/command.ts';
import { describe, type GraphClient, HEAD, query, queryShown, tellUnread } from './graph.ts';
import { graphAt, isFinal, readTypes } from './graph-options.ts';
import { subscribe } from './graph-stream.ts';
import { write, written } from './payments/write.ts';

/** Pause before subscribing again after any other error, in milliseconds. */
const RETRY_MS = 1_000;
const PAGE = 100;
/** After how many events progress is printed if standard error is no terminal. */
const PROGRESS_EVERY = 1_000;

/** Reads the event log through a running gateway, so that it shows what a client would see. */
export const events: Command = {
  help: EVENTS_HELP,
  helpOn: EVENTS_HELP_ON,
  async run(args) {
    const [verb, ...rest] = args;
    if (verb === 'forward') return runForward(rest);
    if (verb !== 'tail' && verb !== 'replay' && verb !== 'search') {
      throw notAVerb(verb, ['tail', 'replay', 'search', 'forward']);
    }
    const { values, positionals } = readArguments(rest, OPTIONS);
    const foreign = (verb === 'tail' ? FILTERS : []).find((option) => values[option] !== undefined);
    if (foreign !== undefined) throw new UsageError(`${verb} takes no --${foreign}`);
    if (verb === 'search' && values.after !== undefined) throw new UsageError('search takes no --after');
    refuseArguments(positionals);
    const times = {
      receivedFrom: readTime('--from', values.from),
      receivedTo: readTime('--to', values.to),
    };
    if (verb === 'search' && FILTERS.every((option) => values[option] === undefined)) {
      throw new UsageError('search wants --from, --to, --transaction, --tracking-key or --account');
    }
    const graph = graphAt(values.url);
    const filter: Filter = {
      ...times,
      transactionId: values.transaction ?? null,
      trackingKey: values['tracking-key'] ?? null,
      clabe: values.account === undefined ? null : await clabeOf(graph, values.account),
    };
    const wanted: Wanted = {
      graph,
      types: readTypes(values.types),
      after: values.after ?? null,
      show:
        values.json === true
          ? (event) => write(`${printable(JSON.stringify(event))}\n`)
          : (event) => {
              const line = lineOf(event, process.stdout.isTTY ? process.stdout.columns : undefined);
              return write(coloured(line, event.type, COLOURS[event.type] ?? 'dim'));
            },
    };
    if (verb === 'tail') await tail(wanted);
    else await replay(wanted, filter, verb === 'search');
    return EXIT.done;
  },
};

const COLOURS: Readonly<Record<string, Colour>> = { MONEY_IN: 'green', CEP: 'cyan' };

const OPTIONS = {
  types: { type: 'string' },
  after: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  transaction: { type: 'string' },
  'tracking-key': { type: 'string' },
  account: { type: 'string' },
  url: { type: 'string' },
  json: { type: 'boolean' },
} as const;
/** Options that select events of the past. */
const FILTERS = ['from', 'to', 'transaction', 'tracking-key', 'account'] as const;

/** The arguments of `Query.events` that the options stand for. */
interface Filter {
  readonly receivedFrom: string | null;
  readonly receivedTo: string | null;
  readonly transactionId: string | null;
  readonly trackingKey: string | null;
  readonly clabe: string | null;
}

const ACCOUNT = 'query ($id: ID!) { account(by: { id: $id }) { clabe instrumentId } }';
const Account = z.object({
  account: z.object({ clabe: z.string(), instrumentId: z.string().nullable() }).nullable(),
});

/** Returns the CLABE of an account, by which its credits are found, and tells the instrument, by which its payments are. */
async function clabeOf(graph: GraphClient, id: string): Promise<string> {
  const { account } = Account.parse(await query(graph, ACCOUNT, { id }));
  if (account === null) throw new CommandError(`The service lists no account ${id} for this token.`);
  const { clabe, instrumentId } = account;
  remark(`Account ${id}: CLABE ${clabe}, instrument ${instrumentId ?? 'none'}.`);
  return clabe;
}

/** Returns a time in the form of the graph; for a date alone, its beginning in UTC. */
function readTime(option: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text;
  if (Number.isNaN(Date.parse(time)) || !/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/i.test(time)) {
    throw new UsageError(
      `${option} got "${text}", wants a day or a time, such as 2026-11-17 or 2026-11-17T09:30:00-06:00`,
    );
  }
  return time;
}

interface Wanted {
  readonly graph: GraphClient;
  readonly types: readonly string[] | null;
  readonly after: string | null;
  /** Resolves once standard output takes more. */
  show(event: Event): Promise<void>;
}

const FIELDS = `
  id type cursor receivedAt
  ... on MoneyInEvent { transactionId transactionDate registeredAt amount { amount currency } rawSubCategory decision refundReason trackingKey }
  ... on CepEvent { bodyId rawStatus trackingKey processedAt }
`;

const Event = z.object({
  id: z.string(),
  type: z.string(),
  cursor: z.string(),
  receivedAt: z.string(),
  transactionId: z.string().nullish(),
  transactionDate: z.string().nullish(),
  registeredAt: z.string().nullish(),
  amount: z.object({ amount: z.string(), currency: z.string() }).optional(),
  rawSubCategory: z.string().nullish(),
  decision: z.string().optional(),
  refundReason: z.string().nullish(),
  trackingKey: z.string().nullish(),
  bodyId: z.string().nullish(),
  rawStatus: z.string().optional(),
  processedAt: z.string().nullish(),
});
type Event = z.output<typeof Event>;

/**
 * Returns one event as one line.
 *
 * @param columns of the terminal that shows it, which the line does not exceed; undefined if the output goes elsewhere.
 */
export function lineOf(
  { receivedAt, type, id, transactionId, cursor, amount, decision, rawSubCategory, rawStatus }: Event,
  columns?: number,
): string {
  const says = [amount?.amount, amount?.currency, rawSubCategory, decision, rawStatus]
    .filter(Boolean)
    .join(' ');
  // Always a word, so that the places of id and transaction count from the end of the line.
  const names = `${id}  ${(transactionId ?? '-').padEnd(id.length)}`;
  const line = printableLine(`${receivedAt}  ${type.padEnd(13)}  ${says.padEnd(32)}  ${names}  ${cursor}`);
  return columns === undefined || line.length <= columns ? line : `${line.slice(0, columns - 1)}…`;
}

async function tail({ graph, types, after, show }: Wanted): Promise<never> {
  const ending = new AbortController();
  onToldToEnd(() => {
    ending.abort();
    // The pipe may have to take the end of a line yet.
    void written().then(() => process.exit(EXIT.done));
  });
  // The cursor to begin from is read first, so that nothing is missed while the stream is opened.
  const { eventCursor } = Head.parse(await query(graph, HEAD, {}));
  const variables = { types, after: after ?? eventCursor };
  const again = () => remark(`Connected again; going on after ${variables.after}.`);
  const trouble = (reason: string) => remark(`${reason.replace(/\.?$/, '.')} Trying again.`);
  remark(`Following ${graph.url} after ${variables.after}. Ctrl-C ends it.`);
  for (;;) {
    for await (const step of subscribe(graph, NEWS, variables, again, trouble)) {
      if ('data' in step) {
        const { events: event } = Next.parse(step.data);
        // What is shown from now on would be cut.
        if (ending.signal.aborted) return new Promise(() => undefined);
        tellUnread(step.unread, [event]);
        await show(event);
        variables.after = event.cursor;
      } else if ('bookmark' in step) {
        variables.after = step.bookmark;
      } else {
        const [failure] = step.failures;
        if (failure === undefined) continue;
        if (isFinal(graph, String(failure.extensions?.['code']))) throw new CommandError(describe(failure));
        remark(`${describe(failure)} Trying again.`);
      }
    }
    await clock.sleep(RETRY_MS);
  }
}

const NEWS = `subscription ($types: [EventType!], $after: Cursor) { events(types: $types, after: $after) { ${FIELDS} } }`;
const Head = z.object({ eventCursor: z.string() });
const Next = z.object({ events: Event });

async function replay(
  { graph, types, after, show }: Wanted,
  filter: Filter,
  isSearch: boolean,
): Promise<void> {
  let cursor = after;
  let count = 0;
  let reachesBackTo: string | null = null;
  let head: string | null = null;
  for (let hasMore = true; hasMore; ) {
    const variables = { types, after: cursor, first: PAGE, ...filter };
    const { data, unread } = await queryShown(graph, PAGES, variables);
    const page = Page.parse(data);
    const { nodes, pageInfo } = page.events;
    tellUnread(unread, nodes);
    for (const event of nodes) await show(event);
    tellProgress(count, count + nodes.length);
    count += nodes.length;
    cursor = pageInfo.endCursor ?? cursor;
    hasMore = pageInfo.hasNextPage;
    reachesBackTo = page.events.reachesBackTo;
    head = page.eventCursor;
  }
  if (process.stderr.isTTY) process.stderr.write('\r');
  const reached = cursor === null || isSearch ? '' : `, up to ${cursor}`;
  const reaches =
    reachesBackTo === null ? 'The log holds none.' : `The log reaches back to ${reachesBackTo}.`;
  const found = isSearch ? ` ${reaches}${beginning(head)}` : '';
  remark(`${count} event${count === 1 ? '' : 's'}${reached}.${found}`);
}

/** Says when the log of a cursor began and which log it is, so that two processes can be compared. A sealed cursor does not tell. */
function beginning(head: string | null): string {
  const epoch = epochOf(head ?? '');
  return epoch === undefined
    ? ''
    : ` It began at ${new Date(begunAt(epoch)).toISOString()} (epoch ${epoch}).`;
}

const PAGES = `query (
  $types: [EventType!], $after: Cursor, $first: Int
  $receivedFrom: DateTime, $receivedTo: DateTime, $transactionId: ID, $trackingKey: String, $clabe: Clabe
) {
  eventCursor
  events(
    types: $types, after: $after, first: $first
    receivedFrom: $receivedFrom, receivedTo: $receivedTo, transactionId: $transactionId, trackingKey: $trackingKey, clabe: $clabe
  ) { nodes { ${FIELDS} } pageInfo { hasNextPage endCursor } reachesBackTo }
}`;

/** What {@link events} sends, but for its verb `forward`. */
export const EVENTS_DOCUMENTS: readonly string[] = [HEAD, ACCOUNT, NEWS, PAGES];

const Page = z.object({
  eventCursor: z.string().nullable(),
  events: z.object({
    nodes: z.array(Event),
    pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    reachesBackTo: z.string().nullable(),
  }),
});

function tellProgress(before: number, now: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${now} events…`);
  else if (Math.floor(before / PROGRESS_EVERY) < Math.floor(now / PROGRESS_EVERY)) remark(`${now} events…`);
}
