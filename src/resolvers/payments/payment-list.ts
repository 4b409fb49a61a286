import { clock } from '../../common/clock.ts';
import { openCursor, sealCursor } from '../../events/seal.ts';
import type { Money } from '../../money/execute.ts';
import type { RecordedPayment } from '../../money/payment-reads.ts';
import {
  PAYMENT_CLASSES,
  type PaymentPosition,
  PaymentsHeldError,
  RecordsUnavailableError,
} from '../../money/record.ts';
import type { Context } from '../../operation/context.ts';
import type { Identity } from '../../operation/identity.ts';
import type { Services, SettleLater } from '../../operation/services.ts';
import { type PageInfo, pageSize } from '../connection.ts';
import { BadInputError, PageCursorError, PaymentRecordError } from '../errors.ts';
import { spanOf } from '../instants.ts';
import {
  CLASSES,
  OPERATIONS,
  type Payment,
  type PaymentOperation,
  type PaymentState,
  paymentOf,
  stateOf,
} from './payment-state.ts';

export interface PaymentsArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
  readonly states?: readonly PaymentState[] | null | undefined;
  readonly operations?: readonly PaymentOperation[] | null | undefined;
  readonly requestedFrom?: string | null | undefined;
  readonly requestedTo?: string | null | undefined;
}

export interface PaymentsPage {
  readonly edges: readonly { readonly cursor: string; readonly node: Payment }[];
  readonly pageInfo: PageInfo;
}

/** What of an operation's context reading payments needs. */
interface Reader {
  readonly identity: Pick<Identity, 'caller'>;
  readonly services: { readonly money: Pick<Money, 'payments'> };
}

/** A reader under whose own credential a payment may be looked for. */
interface Payer {
  readonly identity: Parameters<SettleLater>[0];
  readonly services: Pick<Services, 'settleLater'> & { readonly money: Pick<Money, 'payments' | 'remember'> };
}

/**
 * The intent that the caller has named by this key; null where it has not used it. Sends no payment. One that stays unknown, and that is not
 * sent again, is looked for from now on, where the gateway has no credential but the caller's.
 *
 * @throws BadInputError for a key under which a version before has paid, which kept too little to show.
 */
export async function paymentByKey(
  key: string,
  { identity, services: { money, settleLater } }: Payer,
): Promise<Payment | null> {
  const { clientId, customerId, keyOwner } = identity.caller;
  const found = await reading(money.payments.byKey({ clientId, customerId, keyOwner, key }));
  if (found === undefined) return null;
  const payment = shown(found);
  if (payment?.state === 'UNKNOWN' && !payment.safeToRetry && settleLater !== undefined)
    money.remember({ clientId, hash: found.hash }, settleLater(identity));
  if (payment !== null) return payment;
  throw new BadInputError(
    'An earlier version of the gateway has paid under this key, and kept too little to show. The same mutation with the same key and contents tells what became of it.',
  );
}

/** The payment of this id; null where the caller has none. */
export async function paymentById(
  id: string,
  { identity: { caller }, services: { money } }: Reader,
): Promise<Payment | null> {
  return shown(await reading(money.payments.byId(caller, id)));
}

/** The payment that a transaction came from; null where it was not made through this graph, or is kept no longer. */
export async function paymentByTransaction(
  id: string,
  { identity: { caller }, services: { money } }: Reader,
): Promise<Payment | null> {
  return shown(await reading(money.payments.byTransaction(caller, id)));
}

/**
 * A page of payments, newest first: onwards from `after`, or back from `before`.
 *
 * @throws BadInputError for arguments that name nothing; PageCursorError for a cursor of another list.
 */
export async function paymentsPage(args: PaymentsArgs, context: Context): Promise<PaymentsPage> {
  const { money } = context.services;
  const { clientId, customerId } = context.identity.caller;
  const isBack = args.last != null || args.before != null;
  if (isBack && (args.first != null || args.after != null)) {
    throw new BadInputError('Use "first" with "after", or "last" with "before": not both.');
  }
  const size = isBack ? pageSize('last', args.last) : pageSize('first', args.first);
  const states = namedOf('states', args.states);
  const operations = namedOf('operations', args.operations)?.map((name) => OPERATIONS[name]);
  const search = {
    clientId,
    customerId,
    operations: operations ?? Object.values(OPERATIONS),
    classes: states === undefined ? PAYMENT_CLASSES : [...new Set(states.map((state) => CLASSES[state]))],
    ...spanOf(['requestedFrom', 'requestedTo'], args.requestedFrom, args.requestedTo),
    isBack,
  };
  const cursors = await cursorsOf(context);
  const cursor = isBack ? args.before : args.after;
  const beyond = cursor == null ? undefined : cursors.open(isBack ? 'before' : 'after', cursor);
  const { payments, goesOn, endedAt } = await reading(
    money.payments.page(
      { ...search, beyond },
      size,
      (record) => states === undefined || states.includes(stateOf(record)),
      () => context.budget.mayReadOn(),
    ),
  );
  const nodes = payments.map(shown).filter((payment) => payment !== null);
  const edges = (isBack ? nodes.toReversed() : nodes).map((node) => ({
    node,
    cursor: cursors.of(node.position),
  }));
  // Where the time has ended the search, the next page goes on from there, not from the last payment that was found.
  const end = endedAt === undefined ? undefined : cursors.of(endedAt);
  return {
    edges,
    pageInfo: {
      hasNextPage: isBack ? cursor != null : goesOn,
      hasPreviousPage: isBack ? goesOn : cursor != null,
      startCursor: (isBack ? end : undefined) ?? edges[0]?.cursor ?? null,
      endCursor: (isBack ? undefined : end) ?? edges.at(-1)?.cursor ?? null,
    },
  };
}

function namedOf<T>(name: string, values: readonly T[] | null | undefined): readonly T[] | undefined {
  if (values?.length === 0)
    throw new BadInputError(`Argument "${name}" must name one, or be left out for all.`);
  return values == null ? undefined : [...new Set(values)];
}

/** A record that says what was asked for. */
const shown = (record: RecordedPayment | undefined): Payment | null =>
  record?.asked == null ? null : paymentOf({ ...record, asked: record.asked }, clock.now());

interface Cursors {
  of(position: PaymentPosition): string;
  /** @throws PageCursorError */
  open(name: 'after' | 'before', cursor: string): PaymentPosition;
}

/** Sealed for everybody: a position holds the hash of a key. The seal is the client's, or the customer's for whom it is narrowed. */
async function cursorsOf({ identity: { caller }, services: { money } }: Reader): Promise<Cursors> {
  const { clientId, customerId = '' } = caller;
  const key = await reading(money.payments.sealKey(clientId));
  const holder = { key, clientId, customerId: `payments ${customerId}` };
  return {
    of: ({ createdAt, hash }) =>
      sealCursor(holder, Buffer.from(`${createdAt}:${hash}`).toString('base64url'), 'stable'),
    open(name, cursor) {
      try {
        const [createdAt, hash = ''] = Buffer.from(openCursor(holder, cursor), 'base64url')
          .toString()
          .split(':');
        return { createdAt: Number(createdAt), hash };
      } catch {
        throw new PageCursorError(
          `Argument "${name}" is no cursor of this list: pass a cursor of a page or an edge of the same list as it came.`,
        );
      }
    },
  };
}

/** @throws PaymentRecordError when the record cannot be reached, or may have forgotten what is asked for */
async function reading<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (cause) {
    if (!(cause instanceof RecordsUnavailableError)) throw cause;
    if (cause instanceof PaymentsHeldError) {
      throw new PaymentRecordError(
        'The record of payments has been put back to an earlier state, and may have forgotten this payment. Ask again when the operator has let payments go on.',
        { cause },
      );
    }
    throw new PaymentRecordError('The record of payments cannot be reached. Try again later.', { cause });
  }
}
