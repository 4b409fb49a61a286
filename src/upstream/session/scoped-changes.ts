import { CUSTOMER_PRIVATE_ACCOUNTS, PRIVATE_ACCOUNTS } from '../accounts.ts';
import { UpstreamError } from '../call/errors.ts';
import type { Answered, Attempt } from '../call/http.ts';
import { isObject, type JsonObject, type Optional, present } from '../call/json.ts';
import type { ChangeOptions, RestChanges } from '../call/rest.ts';
import type { CustomerScope } from '../customer-scope.ts';
import { INSTRUMENTS, type InstrumentLoader } from '../instruments.ts';
import {
  INTERNAL_TRANSACTION,
  MONEY_OUT,
  PENNY_VALIDATION,
  REFUND,
  type TransactionLoader,
} from '../transactions.ts';
import { WEBHOOK } from '../webhooks.ts';

/** Look-ups that a change needs before it may be sent. They are narrowed themselves. */
export interface OwnershipReads {
  readonly instruments: InstrumentLoader;
  readonly transactions: TransactionLoader;
}

interface Change {
  readonly params: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/** Returns the identifier of the noun that is not the caller's; undefined if the change may be sent. */
type Check = (change: Change) => Promise<string | undefined>;

/**
 * Makes the changes of a caller narrowed to one customer. If a change names something that is not the customer's, or that nobody has, the
 * gateway answers it itself, and alike, so that the two cannot be told apart. A route that is not listed is forbidden: a new one must first
 * say what it touches.
 *
 * @param look makes the look-ups, once they are needed.
 */
export function scopeChanges(
  rest: RestChanges,
  scope: CustomerScope,
  look: () => OwnershipReads,
): RestChanges {
  /** What was found serves the sending after its check. It is dropped after a look-up that found nothing, or failed. */
  let reads: OwnershipReads | undefined;
  const read = (): OwnershipReads => {
    reads ??= look();
    return reads;
  };
  const owns = async (instrumentId: unknown): Promise<boolean> =>
    typeof instrumentId === 'string' && (await read().instruments.find('id', instrumentId)) !== null;

  const movement: Check = async ({ body: { source_instrument_id: from, destination_instrument_id: to } }) => {
    const [source, destination] = await Promise.all([owns(from), owns(to)]);
    if (!source) return 'source_not_found';
    return destination ? undefined : 'destination_not_found';
  };
  const ownedBy =
    (ownerOf: (change: Change) => unknown): Check =>
    async (change) =>
      scope.owner(text(ownerOf(change))) ? undefined : 'owner_not_found';

  const checks = new Map<string, Check>([
    [`POST ${MONEY_OUT}`, movement],
    [`POST ${INTERNAL_TRANSACTION}`, movement],
    [`POST ${PENNY_VALIDATION}`, movement],
    [
      `POST ${REFUND}`,
      // The money goes back from the account at which it had arrived.
      async ({ params }) =>
        (await read().transactions.ownsSide(params['transactionId'] ?? '', 'destinationInstrument'))
          ? undefined
          : 'transaction_not_found',
    ],
    [`POST ${PRIVATE_ACCOUNTS}`, ownedBy(({ body }) => body['owner_id'])],
    [
      `POST ${CUSTOMER_PRIVATE_ACCOUNTS}`,
      async (change) =>
        (await ownedBy(({ params }) => params['customerId'])(change)) ??
        (await ownedBy(({ params, body }) => body['owner_id'] ?? params['customerId'])(change)),
    ],
    [`POST ${INSTRUMENTS}`, ownedBy(({ body }) => body['customer_id'])],
    [`PATCH ${WEBHOOK}`, async () => 'webhook_not_found'],
    [`DELETE ${WEBHOOK}`, async () => 'webhook_not_found'],
  ]);

  const refusal = async (
    method: string,
    route: string,
    options: ChangeOptions = {},
  ): Promise<Attempt | undefined> => {
    const check = checks.get(`${method} ${route}`);
    if (check === undefined) return forbidden();
    const refused = await answerTo(check({ params: options.params ?? {}, body: parse(options.body) }));
    if (refused !== undefined) reads = undefined;
    return refused;
  };

  return {
    clientId: rest.clientId,
    check: refusal,
    send: async (method, route, options) =>
      (await refusal(method, route, options)) ?? rest.send(method, route, options),
  };
}

/** Returns what a change is answered with in the place of the service; undefined if the check finds that it may be sent. */
async function answerTo(checking: ReturnType<Check>): Promise<Attempt | undefined> {
  try {
    const missing = await checking;
    return missing === undefined ? undefined : notFound(missing);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return { kind: 'failed', error: notSent(error) };
  }
}

const text = (value: unknown): Optional => (typeof value === 'string' ? present(value) : undefined);

/** Parses a body that a noun has made: a JSON object, or none. */
function parse(body: string | undefined): JsonObject {
  const value: unknown = body === undefined ? {} : JSON.parse(body);
  return isObject(value) ? value : {};
}

/** Returns a 404 in the form of docs/upstream-api.md, "Errors". Of these identifiers only `destination_not_found` is documented there. */
function notFound(identifier: string): Answered {
  const body = {
    code: 9,
    message: 'API Error',
    details: [{ reason: identifier, domain: 'CORE', metadata: { error_detail: identifier } }],
  };
  const text = JSON.stringify(body);
  return { kind: 'answered', status: 404, body, text, retryAfterMs: undefined, synthesized: true };
}

const forbidden = (): Attempt => ({
  kind: 'failed',
  error: new UpstreamError('FORBIDDEN', 'This is for callers who act for the whole client.', {
    dispatched: false,
  }),
});

/** Returns the error of a look-up that failed before the change was sent. */
const notSent = (cause: UpstreamError): UpstreamError =>
  new UpstreamError(cause.code, cause.message, {
    cause,
    dispatched: false,
    ...(cause.refusal === undefined ? {} : { refusal: cause.refusal }),
    ...(cause.retryAfterMs === undefined ? {} : { retryAfterMs: cause.retryAfterMs }),
  });
