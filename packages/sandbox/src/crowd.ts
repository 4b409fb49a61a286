import { makeClabe } from './clabe.ts';
import { OWN_INSTITUTION } from './participants.ts';
import type { Account, Client, Customer, Instrument } from './state.ts';
import type { Numbered } from './things.ts';
import type { World } from './world.ts';

/** Beneath this plaza stand the CLABEs of the crowd: those of all others are issued in another. */
const PLAZA = '181';
const HEXADECIMAL = 16;
const NUMBER_DIGITS = 12;

/**
 * Gives a client many customers more, each with an account and its instrument, so that it can be seen how a program does
 * with a large merchant. Each of them follows from its number alone, which its ids and its CLABE end with: a million of them
 * take neither time at the start nor memory, until somebody pays one of them.
 */
export function addCrowd(world: World, client: Client, count: number, bankId: string): void {
  const crowd: Crowd = {
    client,
    bankId,
    createdAt: world.clock.now(),
    customerIds: idsOf(world, 'customer', count),
    accountIds: idsOf(world, 'account', count),
    instrumentIds: idsOf(world, 'instrument', count),
    baseIds: idsOf(world, 'account-id', count),
  };
  const numbered = <T>({ of, numberOf }: Ids, make: (crowd: Crowd, number: number) => T): Numbered<T> => ({
    clientId: client.id,
    count,
    make: (number) => make(crowd, number),
    idOf: of,
    numberOf,
  });
  const { customerIds, accountIds, instrumentIds } = crowd;
  world.state.customers.number(numbered(customerIds, makeCustomer));
  world.state.accounts.number(numbered(accountIds, makeAccount));
  world.state.instruments.number(numbered(instrumentIds, makeInstrument));
  world.state.crowd = {
    accountIdOfClabe: (clabe) => {
      const number = Number(clabe.slice(6, 17));
      return number < count && clabe === clabeOf(number) ? accountIds.of(number) : undefined;
    },
    instrumentIdOfCustomer: (customerId) => {
      const number = customerIds.numberOf(customerId);
      return number === undefined ? undefined : instrumentIds.of(number);
    },
  };
}

/** Ids of one kind of thing, each with a number in it. */
interface Ids {
  of(number: number): string;
  numberOf(id: string): number | undefined;
}

/** What the things of a crowd have in common. */
interface Crowd {
  readonly client: Client;
  readonly bankId: string;
  readonly createdAt: number;
  readonly customerIds: Ids;
  readonly accountIds: Ids;
  readonly instrumentIds: Ids;
  readonly baseIds: Ids;
}

function idsOf(world: World, kind: string, count: number): Ids {
  const prefix = world.ids.uuid(`crowd-${kind}`).slice(0, -NUMBER_DIGITS);
  const of = (number: number) => prefix + number.toString(HEXADECIMAL).padStart(NUMBER_DIGITS, '0');
  return {
    of,
    numberOf(id) {
      if (!id.startsWith(prefix)) return undefined;
      const number = Number.parseInt(id.slice(prefix.length), HEXADECIMAL);
      return number < count && id === of(number) ? number : undefined;
    },
  };
}

const BANK_CODE = OWN_INSTITUTION.slice(-3);
const digits = (number: number, length: number) => String(number).padStart(length, '0');
const clabeOf = (number: number) => makeClabe(BANK_CODE, PLAZA, digits(number, 11));
const nameOf = (number: number) => `Comercio ${digits(number, 7)} SA de CV`;
const rfcOf = (number: number) =>
  `COM${digits(number % 1_000_000, 6)}C${digits(Math.floor(number / 1_000_000) % 100, 2)}`;

const made = ({ createdAt }: Crowd) => ({ createdAt, updatedAt: createdAt });
const owned = (crowd: Crowd, number: number) => ({
  ...made(crowd),
  bankId: crowd.bankId,
  clientId: crowd.client.id,
  ownerId: crowd.customerIds.of(number),
});
const numbersOf = (number: number) => ({
  clabeNumber: clabeOf(number),
  accountNumber: clabeOf(number).slice(6),
});

const makeCustomer = (crowd: Crowd, number: number): Customer => ({
  ...made(crowd),
  id: crowd.customerIds.of(number),
  clientId: crowd.client.id,
  name: nameOf(number),
  rfc: rfcOf(number),
  representative: {
    name: `Representante ${digits(number, 7)}`,
    rfc: `REPR${digits(number % 1_000_000, 6)}A01`,
    phone: `+5255${digits(number, 8)}`,
    email: `legal@comercio-${number}.example.mx`,
  },
  domain: `comercio-${number}.example.mx`,
  alias: `comercio-${number}`,
  status: 'ACTIVE',
  validationStatus: 'VALIDATED',
});

const makeAccount = (crowd: Crowd, number: number): Account => ({
  ...owned(crowd, number),
  ...numbersOf(number),
  id: crowd.accountIds.of(number),
  requestedId: crowd.baseIds.of(number),
  instrumentId: crowd.instrumentIds.of(number),
  ownerType: 'CUSTOMER',
  adapterId: crowd.client.adapterId,
  accountType: 'PRIVATE_ACCOUNT',
  status: 'ACTIVE',
});

const makeInstrument = (crowd: Crowd, number: number): Instrument => ({
  ...owned(crowd, number),
  id: crowd.instrumentIds.of(number),
  customerId: crowd.customerIds.of(number),
  alias: `Cuenta de ${nameOf(number)}`,
  type: 'SENDER_RECEIVER',
  status: 'ACTIVE',
  rfc: rfcOf(number),
  detail: { kind: 'clabe', ...numbersOf(number), holderName: nameOf(number) },
  accountId: crowd.accountIds.of(number),
});
