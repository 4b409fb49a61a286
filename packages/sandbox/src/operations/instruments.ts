import { makeClabe } from '../clabe.ts';
import type { Bank, CardDetail, ClabeDetail, Instrument } from '../state.ts';
import type { World } from '../world.ts';

export interface NewInstrument {
  clientId: string;
  customerId: string | undefined;
  bankId: string;
  alias: string;
  rfc: string;
  detail: CardDetail | ClabeDetail;
}

/** Registers an external instrument, one that can only receive. */
export function registerInstrument(world: World, request: NewInstrument): Instrument {
  const instrument = externalInstrument(world, request);
  world.state.instruments.set(instrument.id, instrument);
  return instrument;
}

/** A bank that is not the sandbox's own, and a CLABE there. */
export function someOutsideAccount(world: World): { bank: Bank; clabeNumber: string } {
  const banks = world.state.banks
    .values()
    .filter((bank) => bank.institutionCode.startsWith('40'))
    .toArray();
  const bank = banks[Number(world.ids.digits('bank-choice', 4)) % banks.length];
  if (bank === undefined) throw new Error('the catalog has no bank');
  return { bank, clabeNumber: makeClabe(bank.clabeCode, '180', world.ids.digits('external-clabe', 11)) };
}

/** A payer outside: it shows in its transaction, and is registered nowhere. */
export function someExternalPayer(world: World, clientId: string, name: string): Instrument {
  const { bank, clabeNumber } = someOutsideAccount(world);
  return externalInstrument(world, {
    clientId,
    customerId: undefined,
    bankId: bank.id,
    alias: name,
    rfc: 'ND',
    detail: { kind: 'clabe', accountNumber: clabeNumber.slice(6), clabeNumber, holderName: name },
  });
}

function externalInstrument(world: World, request: NewInstrument): Instrument {
  const now = world.clock.now();
  return {
    ...request,
    id: world.ids.uuid('instrument'),
    ownerId: request.customerId ?? request.clientId,
    type: 'RECEIVER',
    status: 'ACTIVE',
    accountId: undefined,
    createdAt: now,
    updatedAt: now,
  };
}
