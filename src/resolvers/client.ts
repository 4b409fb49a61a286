import type { Context } from '../operation/context.ts';
import type { Account } from '../upstream/accounts.ts';
import type { Customer } from '../upstream/customers.ts';
import type { Instrument } from '../upstream/instruments.ts';
import type { Loader } from '../upstream/lists/loader.ts';
import type { Webhook } from '../upstream/webhooks.ts';
import { listOf, type Page, type PageArgs, pageOf, readWindow } from './connection.ts';
import { argumentId } from './ids.ts';
import { instrumentPage } from './instrument.ts';

/** The client (merchant) itself. The upstream has no resource for it: its id is all there is. */
export class Client {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }
}

/** The client that the caller acts for, which is the client of everything that it can see. */
export const client = (context: Context): Client => new Client(context.identity.caller.clientId);

export const clientAccounts = (args: PageArgs, context: Context): Promise<Page<Account>> =>
  windowPage('accounts', context.reads.session.accounts, args, context);

export const clientCustomers = (args: PageArgs, context: Context): Promise<Page<Customer>> =>
  windowPage('customers', context.reads.session.customers, args, context);

/** One window of a list of the client's. */
async function windowPage<T>(
  field: string,
  list: Loader<T>,
  args: PageArgs,
  context: Context,
): Promise<Page<T>> {
  const page = await readWindow(listOf(context.identity, `Client ${field}`), args, (offset, limit) =>
    list.window(offset, limit),
  );
  // Rows that come after what they look up need no promise each.
  await context.reads.prefetched;
  return page;
}

export const clientWebhooks = async (args: PageArgs, context: Context): Promise<Page<Webhook>> =>
  pageOf(listOf(context.identity, 'Client webhooks'), await context.reads.session.webhooks.all(), args);

/** Instruments of the client and all its customers, or of one customer. */
export function clientInstruments(
  args: PageArgs & { readonly customerId?: string | null | undefined },
  context: Context,
): Promise<Page<Instrument>> {
  const customerId = args.customerId == null ? undefined : argumentId('customerId', 'uuid', args.customerId);
  return instrumentPage(`Client instruments ${customerId ?? ''}`, args, context, customerId);
}
