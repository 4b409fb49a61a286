import { toCents } from '../../common/amounts.ts';
import type { Movement } from './compare.ts';
import { inTurns, type Turn } from './in-turns.ts';

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
export async function movementsOf(
  accounts: readonly ComparedAccount[],
  payments: readonly KnownPayment[],
  credits: readonly KnownCredit[],
  marginMs: number,
  turn: Turn,
): Promise<readonly Movement[]> {
  const byInstrument = new Map<string, string>();
  const byClabe = new Map<string, string>();
  await inTurns(accounts, turn, ({ id, clabe, instrumentId }) => {
    // A payment names it as its caller has written it.
    if (instrumentId !== null) byInstrument.set(instrumentId.toLowerCase(), id);
    byClabe.set(clabe, id);
  });
  const found: Movement[] = [];
  const halves = new Halves(marginMs);
  await inTurns(payments, turn, (payment) => {
    for (const movement of ofPayment(payment, byInstrument)) {
      found.push(movement);
      if (movement.cents > 0) halves.add(movement);
    }
  });
  await inTurns(credits, turn, (credit) => {
    const movement = ofCredit(credit, byClabe);
    if (movement === undefined) return;
    const left = credit.isFromOutside ? movement : halves.without(movement);
    if (left !== undefined) found.push(left);
  });
  return found;
}

function ofPayment(
  { source, destination, isFromAny, cents, sentAt, doneAt }: KnownPayment,
  byInstrument: ReadonlyMap<string, string>,
): Movement[] {
  const isCertain = doneAt !== undefined;
  const when = { from: sentAt, to: doneAt ?? Number.POSITIVE_INFINITY, isCertain };
  if (isFromAny) return [{ account: null, cents: -cents, ...when, isCertain: false }];
  const from = source === null ? undefined : byInstrument.get(source.toLowerCase());
  const to = destination === null ? undefined : byInstrument.get(destination.toLowerCase());
  return [
    ...(from === undefined ? [] : [{ account: from, cents: -cents, ...when }]),
    ...(to === undefined ? [] : [{ account: to, cents, ...when }]),
  ];
}

/** A credit may show in the balance from its date on, and does at the latest once its webhook has been answered. */
function ofCredit(
  { clabe, cents, at, receivedAt, isRejected }: KnownCredit,
  accounts: ReadonlyMap<string, string>,
): Movement | undefined {
  const account = accounts.get(clabe ?? '');
  if (account === undefined) return undefined;
  const told = at ?? receivedAt;
  const times = { from: Math.min(told, receivedAt), to: Math.max(told, receivedAt) };
  return { account, cents, ...times, isCertain: !isRejected };
}

/** The halves that internal transactions of the gateway's own have added to accounts. */
class Halves {
  readonly #marginMs: number;
  /** By account and amount; those that no credit has been taken for. */
  readonly #left = new Map<string, Movement[]>();

  constructor(marginMs: number) {
    this.#marginMs = marginMs;
  }

  add(half: Movement): void {
    const alike = this.#left.get(nameOf(half));
    if (alike === undefined) this.#left.set(nameOf(half), [half]);
    else alike.push(half);
  }

  /**
   * The credit, unless it is the other half of one of them: undefined then. Of payments that are alike another may have been taken for
   * the one that a credit belongs to, so that what is left of such credits may be a half as well.
   */
  without(credit: Movement): Movement | undefined {
    const alike = this.#left.get(nameOf(credit));
    if (alike === undefined) return credit;
    const margin = this.#marginMs;
    const twin = alike.findIndex(
      (half) => credit.from <= half.to + margin && credit.to >= half.from - margin,
    );
    if (twin === -1) return { ...credit, isCertain: false };
    alike.splice(twin, 1);
    return undefined;
  }
}

const nameOf = ({ account, cents }: Movement): string => `${account} ${cents}`;

/** Centavos of an amount of pesos with up to two decimals, as a number, by which balances and movements are added up; 0 for anything else. */
export const centavos = (amount: string): number => Number(toCents(amount) ?? 0n);

/** Pesos with a sign and two decimals. */
export const signedPesos = (cents: number): string =>
  `${cents < 0 ? '-' : '+'}${(Math.abs(cents) / 100).toFixed(2)}`;
