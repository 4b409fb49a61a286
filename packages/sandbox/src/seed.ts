import { blockInstrument, openAccount } from './operations/accounts.ts';
import { registerInstrument, someOutsideAccount } from './operations/instruments.ts';
import { validateLater } from './operations/kyb.ts';
import { PARTICIPANTS } from './participants.ts';
import {
  type ClientSeed,
  type CustomerSeed,
  DEMO_CLIENT,
  type ReceiverSeed,
  UNRELATED_CLIENT,
} from './seed-data.ts';
import { type Belongings, type History, makeHistory } from './seed-history.ts';
import type { Client, Customer, Instrument } from './state.ts';
import type { World } from './world.ts';

/** What was seeded for one client, by role. Instruments are in the order of making. */
export interface Seeded extends Belongings {
  customers: Customer[];
  history: History;
}

/**
 * Fills a new world: the catalog, the demo client and one that has nothing to do with it, with their history. Takes
 * `HISTORY_MS` of simulated time, during which the clock must stand still but for the steps made here.
 */
export async function seed(given: World): Promise<Seeded[]> {
  // Nobody has had the time to register a webhook before the history.
  const world = { ...given, choices: { ...given.choices, pennyValidationNeedsWebhook: false } };
  for (const participant of PARTICIPANTS) {
    const id = world.ids.uuid('bank');
    world.state.banks.set(id, { id, ...participant });
  }
  const seeders = [DEMO_CLIENT, UNRELATED_CLIENT].map((data) => new ClientSeeder(world, data));
  for (const seeder of seeders) seeder.addFounders();
  const histories = await makeHistory(world, seeders);
  for (const seeder of seeders) seeder.addNewcomers();
  return seeders.flatMap((seeder, index) => {
    const history = histories[index];
    return history === undefined ? [] : [{ ...seeder.belongings(), history }];
  });
}

class ClientSeeder implements Belongings {
  readonly client: Client;
  readonly customers: Customer[] = [];
  readonly accounts: Belongings['accounts'] = [];
  readonly internal: Instrument[] = [];
  readonly clabe: Instrument[] = [];
  readonly card: Instrument[] = [];
  readonly centralizing: Instrument;
  readonly #world: World;
  readonly #data: ClientSeed;

  constructor(world: World, data: ClientSeed) {
    this.#world = world;
    this.#data = data;
    this.client = makeClient(world, data);
    const type = world.choices.valuesBeyondTheSpec ? 'CENTRALIZING_ACCOUNT' : 'PRIVATE_ACCOUNT';
    this.centralizing = this.#open(undefined, 'Cuenta concentradora', type);
    this.client.centralizingInstrumentId = this.centralizing.id;
  }

  belongings() {
    const { client, customers, accounts, internal, clabe, card, centralizing } = this;
    return { client, customers, accounts, internal, clabe, card, centralizing };
  }

  /** Everything that is there before the history. */
  addFounders(): void {
    for (const alias of this.#data.accounts) this.#open(undefined, alias);
    this.#receive(undefined, this.#data);
    for (const customer of this.#data.customers) this.#addCustomer(customer);
  }

  /** Blocks what is to be blocked, now that it has money; and adds whom the history would have validated. */
  addNewcomers(): void {
    for (const instrument of this.internal) {
      if (instrument.alias.startsWith('Bloqueada')) blockInstrument(this.#world, instrument);
    }
    for (const customer of this.#data.newcomers) this.#addCustomer(customer);
  }

  #addCustomer(data: CustomerSeed): void {
    const customer = makeCustomer(this.#world, this.client, data);
    this.customers.push(customer);
    for (const alias of data.accounts) this.#open(customer, alias);
    this.#receive(customer, data);
  }

  #open(customer: Customer | undefined, alias: string, accountType = 'PRIVATE_ACCOUNT'): Instrument {
    const { account, instrument } = openAccount(this.#world, {
      clientId: this.client.id,
      customerId: customer?.id,
      bankId: undefined,
      adapterId: this.client.adapterId,
      requestedId: undefined,
      alias,
      accountType,
      holder: customer ?? this.client,
    });
    this.accounts.push(account);
    this.internal.push(instrument);
    return instrument;
  }

  #receive(
    customer: Customer | undefined,
    data: { clabes: readonly ReceiverSeed[]; cards: readonly ReceiverSeed[] },
  ): void {
    const register = (receiver: ReceiverSeed, kind: 'clabe' | 'card') =>
      makeReceiver(this.#world, this.client, customer, receiver, kind);
    this.clabe.push(...data.clabes.map((receiver) => register(receiver, 'clabe')));
    this.card.push(...data.cards.map((receiver) => register(receiver, 'card')));
  }
}

function makeClient({ ids, clock, state }: World, data: ClientSeed): Client {
  const now = clock.now();
  const credential = () => ({
    id: ids.uuid('credential'),
    secret: ids.secret('secret', 'sbx_secret_'),
    createdAt: now,
    updatedAt: now,
  });
  const client: Client = {
    id: ids.uuid('client'),
    name: data.name,
    rfc: data.rfc,
    apiKey: ids.secret('api-key', 'sbx_key_'),
    adapterId: ids.uuid('adapter'),
    credentials: [
      { ...credential(), status: 'ACTIVE' },
      { ...credential(), status: 'INACTIVE', deletedAt: now },
    ],
    centralizingInstrumentId: '',
  };
  state.clients.set(client.id, client);
  return client;
}

function makeCustomer(world: World, client: Client, data: CustomerSeed): Customer {
  const now = world.clock.now();
  const { name, rfc, alias, representative } = data;
  const domain = `${alias}.example.mx`;
  const unusual = world.choices.valuesBeyondTheSpec && data.accounts.length > 1;
  const customer: Customer = {
    id: world.ids.uuid('customer'),
    clientId: client.id,
    name,
    rfc,
    representative: { ...representative, email: `legal@${domain}` },
    domain,
    alias,
    status: unusual ? 'IN_REVIEW' : 'ACTIVE',
    validationStatus: 'PENDING',
    createdAt: now,
    updatedAt: now,
  };
  world.state.customers.set(customer.id, customer);
  validateLater(world, customer);
  return customer;
}

function makeReceiver(
  world: World,
  client: Client,
  customer: Customer | undefined,
  { alias, holder, rfc }: ReceiverSeed,
  kind: 'clabe' | 'card',
): Instrument {
  const { bank, clabeNumber } = someOutsideAccount(world);
  const clabe = {
    kind: 'clabe' as const,
    accountNumber: clabeNumber.slice(6),
    clabeNumber,
    holderName: holder,
  };
  const card = {
    kind: 'card' as const,
    cardNumber: `415231${world.ids.digits('card', 10)}`,
    expirationDate: undefined,
    holderName: holder,
  };
  return registerInstrument(world, {
    clientId: client.id,
    customerId: customer?.id,
    bankId: bank.id,
    alias,
    rfc,
    detail: kind === 'clabe' ? clabe : card,
  });
}
