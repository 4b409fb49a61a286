import type { Context } from '../operation/context.ts';
import type { Account } from '../upstream/accounts.ts';
import type { Customer } from '../upstream/customers.ts';
import type { Instrument } from '../upstream/instruments.ts';
import type { Webhook } from '../upstream/webhooks.ts';
import { type Page, type PageArgs, pageOf } from './connection.ts';
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
export const client = (context: Context): Client => new Client(context.caller.clientId);

export async function clientAccounts(args: PageArgs, context: Context): Promise<Page<Account>> {
  const [accounts] = await Promise.all([context.session.accounts.all(), context.prefetched]);
  return pageOf(accounts, args);
}

export async function clientCustomers(args: PageArgs, context: Context): Promise<Page<Customer>> {
  const [customers] = await Promise.all([context.session.customers.all(), context.prefetched]);
  return pageOf(customers, args);
}

export const clientWebhooks = async (args: PageArgs, context: Context): Promise<Page<Webhook>> =>
  pageOf(await context.session.webhooks.all(), args);

/** Instruments of the client and all its customers, or of one customer. */
export function clientInstruments(
  args: PageArgs & { readonly customerId?: string | null | undefined },
  context: Context,
): Promise<Page<Instrument>> {
  const customerId = args.customerId == null ? undefined : argumentId('customerId', 'uuid', args.customerId);
  return instrumentPage(args, context, customerId);
}
