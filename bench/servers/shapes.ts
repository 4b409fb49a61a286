/** The fields of the REST answers that the work reads. */
export interface Items<T> {
  readonly data: readonly T[];
  readonly totalItems: number;
}

export interface Bank {
  readonly id: string;
}

export interface Instrument {
  readonly id: string;
  readonly bankId: string;
  readonly customerId?: string;
  readonly alias: string;
  readonly type: string;
  readonly rfc: string;
}

export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly rfc: string;
}

export interface Account {
  readonly id: string;
  readonly ownerId: string;
  readonly clabeNumber: string;
  readonly availableBalance: string;
}

interface Side {
  readonly id: string;
  readonly instrumentAlias: string;
  readonly rfc: string;
}

export interface Transaction {
  readonly id: string;
  readonly amount: string;
  readonly currency: string;
  readonly transactionStatus: string;
  readonly trackingId: string;
  readonly description: string;
  readonly sourceInstrument: Side;
  readonly destinationInstrument: Side;
  readonly audit: { readonly createdAt: string };
}
