import type { Movement } from './compare.ts';

/** An account whose balance is compared. */
export interface ComparedAccount {
  readonly id: string;
  readonly clabe: string;
  readonly instrumentId: string | null;
}

/** A payment that has left, and was not refused. Times are in ms since the epoch. */
export interface KnownPayment {
  /** Ids of instruments: where the money came from, and where it has gone to within the client. Null for none of the client's. */
  readonly source: string | null;
  readonly destination: string | null;
  /** Whether it is not known where the money came from: it may be any account. */
  readonly isFromAny: boolean;
  readonly cents: number;
  readonly sentAt: number;
  /** When it was known to be done; undefined while it may or may not have moved. */
  readonly doneAt: number | undefined;
}

/** A credit that an event tells of. Times are in ms since the epoch. */
export interface KnownCredit {
  /** Of the account that it went to; null where the event names none. */
  readonly clabe: string | null;
  readonly cents: number;
  /** By the service's own clock; null where the event does not say. */
  readonly at: number | null;
  readonly receivedAt: number;
  /** Whether the gateway has said no to it, so that the service returns it. */
  readonly isRejected: boolean;
  /** Whether it came from another bank. Any other may be the other half of an internal transaction that the gateway has made. */
  readonly isFromOutside: boolean;
}

/** What payments and credits have moved, account by account. */
export function movementsOf(
  accounts: readonly ComparedAccount[],
  payments: readonly KnownPayment[],
  credits: readonly KnownCredit[],
  marginMs: number,
): readonly Movement[] {
  const byInstrument = new Map(
    accounts.flatMap(({ id, instrumentId }) => (instrumentId === null ? [] : [[instrumentId, id] as const])),
  );
  const byClabe = new Map(accounts.map(({ id, clabe }) => [clabe, id]));
  const paid = payments.flatMap((payment) => ofPayment(payment, byInstrument, accounts));
  const of = (some: readonly KnownCredit[]) => some.flatMap((credit) => ofCredit(credit, byClabe));
  const outside = of(credits.filter(({ isFromOutside }) => isFromOutside));
  const inside = of(credits.filter(({ isFromOutside }) => !isFromOutside));
  return [...paid, ...outside, ...withoutTwins(inside, paid, marginMs)];
}

function ofPayment(
  { source, destination, isFromAny, cents, sentAt, doneAt }: KnownPayment,
  byInstrument: ReadonlyMap<string, string>,
  accounts: readonly ComparedAccount[],
): Movement[] {
  const isCertain = doneAt !== undefined;
  const when = { from: sentAt, to: doneAt ?? Number.POSITIVE_INFINITY, isCertain };
  if (isFromAny) {
    return accounts.map(({ id }) => ({ account: id, cents: -cents, ...when, isCertain: false }));
  }
  const from = source === null ? undefined : byInstrument.get(source);
  const to = destination === null ? undefined : byInstrument.get(destination);
  return [
    ...(from === undefined ? [] : [{ account: from, cents: -cents, ...when }]),
    ...(to === undefined ? [] : [{ account: to, cents, ...when }]),
  ];
}

/** A credit may show in the balance from its date on, and does at the latest once its webhook has been answered. */
function ofCredit(
  { clabe, cents, at, receivedAt, isRejected }: KnownCredit,
  accounts: ReadonlyMap<string, string>,
): Movement[] {
  const account = accounts.get(clabe ?? '');
  if (account === undefined) return [];
  const told = at ?? receivedAt;
  const times = { from: Math.min(told, receivedAt), to: Math.max(told, receivedAt) };
  return [{ account, cents, ...times, isCertain: !isRejected }];
}

/**
 * Credits without those that are the other half of an internal transaction which the gateway has made itself. Of payments that are alike
 * another may have been taken for the one that a credit belongs to, so that what is left of such credits may be a half as well.
 */
function withoutTwins(
  received: readonly Movement[],
  paid: readonly Movement[],
  marginMs: number,
): readonly Movement[] {
  const halves = paid.filter(({ cents }) => cents > 0);
  const alike = new Set(halves.map(({ account, cents }) => `${account} ${cents}`));
  return received.flatMap((credit) => {
    const { account, cents } = credit;
    const twin = halves.findIndex(
      (half) =>
        half.account === account &&
        half.cents === cents &&
        credit.from <= half.to + marginMs &&
        credit.to >= half.from - marginMs,
    );
    if (twin !== -1) {
      halves.splice(twin, 1);
      return [];
    }
    return [alike.has(`${account} ${cents}`) ? { ...credit, isCertain: false } : credit];
  });
}

/** Centavos of an amount of pesos with up to two decimals. */
export function centavos(amount: string): number {
  const [, sign = '', pesos = '0', cents = ''] = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(amount) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(pesos) * 100 + Number(cents.padEnd(2, '0')));
}

/** Pesos with a sign and two decimals. */
export const signedPesos = (cents: number): string =>
  `${cents < 0 ? '-' : '+'}${(Math.abs(cents) / 100).toFixed(2)}`;
