import type { Client } from '../resolvers/client.ts';
import type { EventPage } from '../resolvers/events/event-page.ts';
import type { Payment } from '../resolvers/payments/payment-state.ts';
import type { Account } from '../upstream/accounts.ts';
import type { Bank } from '../upstream/banks.ts';
import type { Customer } from '../upstream/customers.ts';
import type { Instrument } from '../upstream/instruments.ts';
import type { DataCep, Transaction } from '../upstream/transactions.ts';
import type { Webhook } from '../upstream/webhooks.ts';
import { builder } from './builder.ts';

// Relations lead in circles: an account has an owner, and an owner has accounts. The files of the nouns meet here, so that
// their imports do not. Each noun's own file says what its type holds.
export const AccountType = builder.objectRef<Account>('Account');
export const BankType = builder.objectRef<Bank>('Bank');
export const CepType = builder.objectRef<DataCep>('Cep');
export const ClientType = builder.objectRef<Client>('Client');
export const CustomerType = builder.objectRef<Customer>('Customer');
export const EventConnectionType = builder.objectRef<EventPage>('EventConnection');
export const InstrumentType = builder.objectRef<Instrument>('Instrument');
export const PaymentType = builder.objectRef<Payment>('Payment');
export const TransactionType = builder.objectRef<Transaction>('Transaction');
export const WebhookType = builder.objectRef<Webhook>('Webhook');
