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
  const createdAt = world.clock.now();
  const made = { createdAt, updatedAt: createdAt };
  const ids = (kind: string) => {
    const prefix = world.ids.uuid(`crowd-${kind}`).slice(0, -NUMBER_DIGITS);
    return {
      of: (number: number) => prefix + number.toString(HEXADECIMAL).padStart(NUMBER_DIGITS, '0'),
      numberOf: (id: string): number | undefined => {
        if (!id.startsWith(prefix)) return undefined;
        const number = Number.parseInt(id.slice(prefix.length), HEXADECIMAL);
        return number < count && id === prefix + number.toString(HEXADECIMAL).padStart(NUMBER_DIGITS, '0')
          ? number
          : undefined;
      },
    };
  };
  const [customerIds, accountIds, instrumentIds, baseIds] = [
    ids('customer'),
    ids('account'),
    ids('instrument'),
    ids('account-id'),
  ];
  const bankCode = OWN_INSTITUTION.slice(-3);
  const digits = (number: number, length: number) => String(number).padStart(length, '0');
  const clabeOf = (number: number) => makeClabe(bankCode, PLAZA, digits(number, 11));
  const nameOf = (number: number) => `Comercio ${digits(number, 7)} SA de CV`;
  const rfcOf = (number: number) =>
    `COM${digits(number % 1_000_000, 6)}C${digits(Math.floor(number / 1_000_000) % 100, 2)}`;

  const numbered = <T>(
    kind: { of(number: number): string; numberOf(id: string): number | undefined },
    make: (number: number) => T,
  ): Numbered<T> => ({
    clientId: client.id,
    count,
    make,
    idOf: kind.of,
    numberOf: kind.numberOf,
  });
  world.state.customers.number(
    numbered(
      customerIds,
      (number): Customer => ({
        ...made,
        id: customerIds.of(number),
        clientId: client.id,
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
      }),
    ),
  );
  const owned = (number: number) => ({
    ...made,
    bankId,
    clientId: client.id,
    ownerId: customerIds.of(number),
  });
  const numbersOf = (number: number) => ({
    clabeNumber: clabeOf(number),
    accountNumber: clabeOf(number).slice(6),
  });
  world.state.accounts.number(
    numbered(
      accountIds,
      (number): Account => ({
        ...owned(number),
        ...numbersOf(number),
        id: accountIds.of(number),
        accountId: baseIds.of(number),
        instrumentId: instrumentIds.of(number),
        ownerType: 'CUSTOMER',
        adapterId: client.adapterId,
        accountType: 'PRIVATE_ACCOUNT',
        status: 'ACTIVE',
      }),
    ),
  );
  world.state.instruments.number(
    numbered(
      instrumentIds,
      (number): Instrument => ({
        ...owned(number),
        id: instrumentIds.of(number),
        customerId: customerIds.of(number),
        alias: `Cuenta de ${nameOf(number)}`,
        type: 'SENDER_RECEIVER',
        status: 'ACTIVE',
        rfc: rfcOf(number),
        detail: { kind: 'clabe', ...numbersOf(number), holderName: nameOf(number) },
        accountId: accountIds.of(number),
      }),
    ),
  );
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
