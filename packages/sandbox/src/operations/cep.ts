import type { ReceiptWish } from '../control-orders.ts';
import { notFound, preconditionFailed } from '../errors.ts';
import { magicOf, says } from '../magic.ts';
import { cepMessage } from '../messages.ts';
import type { Tell } from '../pending.ts';
import type { Cep, Transaction } from '../state.ts';
import { shownStatus } from '../views.ts';
import type { World } from '../world.ts';
import { settlementSeconds } from './money-out.ts';

const MINUTE = 60;

/** Seconds after the start of each of the 17 retrieval attempts (docs/upstream-api.md, "Retrieval schedule"). */
const ATTEMPTS: readonly number[] = [
  0,
  90,
  3 * MINUTE,
  8 * MINUTE,
  13 * MINUTE,
  18 * MINUTE,
  ...Array.from({ length: 11 }, (_, index) => (33 + 15 * index) * MINUTE),
];

const LATE_ATTEMPT = 6;
const FIRST_DELAYED_ATTEMPT = 4;

/**
 * Runs the retrieval schedule of one penny validation on the clock: a CEP message at every attempt, with the status that
 * the spec's table gives, until COMPLETED or FAILED.
 *
 * A destination whose alias or holder says "Late receipt" has its CEP issued at attempt 6; one that says "No receipt" never.
 * The CEP of one that says "Other holder" names somebody else than the holder it was registered with.
 */
export function followCep(world: World, validation: Transaction, cep: Cep): void {
  const end = world.pending.add(validation.id, {
    // A call that ends the transfer and its receipt awaits the transfer's credit, whose rejection sends the transfer back meanwhile.
    canBeDone: () => validation.status !== 'REFUNDED',
    done: (tell) => {
      complete(world, validation, cep);
      tellOf(world, validation, cep, tell);
    },
    failed: (tell) => {
      cep.status = 'FAILED';
      tellOf(world, validation, cep, tell);
    },
  });
  const attempt = (number: number) => {
    if (cep.status === 'COMPLETED' || cep.status === 'FAILED') return;
    if (world.clock.now() >= cep.createdAt + issuedAfterSeconds(world, validation, cep) * 1000)
      return end('done');
    if (number === ATTEMPTS.length) return end('failed');
    cep.status = number >= FIRST_DELAYED_ATTEMPT ? 'DELAYED' : 'PENDING';
    tellOf(world, validation, cep, (message) => world.deliveries.enqueue(message));
    schedule(number + 1);
  };
  const schedule = (number: number) => {
    const seconds = ATTEMPTS[number - 1];
    if (seconds !== undefined) world.clock.schedule(cep.createdAt + seconds * 1000, () => attempt(number));
  };
  schedule(1);
}

/**
 * Does to the receipt of a transaction what somebody wishes. Returns the transaction.
 *
 * @throws ApiError 404 where no receipt of it is on the way; 400 where one is to come of a transfer that came back.
 */
export async function decideReceipt(
  world: World,
  transactionId: string,
  wish: ReceiptWish,
  tell: Tell,
): Promise<Transaction> {
  const validation = world.state.transactions.get(transactionId);
  const cep = validation?.cep;
  if (validation === undefined || cep === undefined || !isOnTheWay(cep)) throw notFound('nothing_pending');
  if (typeof wish === 'object') {
    cep.shownAs = wish.status;
    tellOf(world, validation, cep, tell);
    return validation;
  }
  if (wish !== 'never') checkReceipt(validation);
  if (wish !== 'now') cep.wish = wish;
  if (wish === 'now' || wish === 'other-holder') {
    // A transfer that has not settled does so before its receipt comes. Of one that has, the return keeps its time.
    await world.pending.complete(validation.id, 'done', tell, ({ isReturn }) => isReturn !== true);
  }
  return validation;
}

/** @throws ApiError 400 for a transfer that came back while its receipt was on the way: none comes any more. */
export function checkReceipt({ cep, status }: Transaction): void {
  if (status === 'REFUNDED' && cep !== undefined && isOnTheWay(cep)) {
    throw preconditionFailed('The transfer came back: it has no receipt.');
  }
}

const isOnTheWay = ({ status }: Cep): boolean => status === 'PENDING' || status === 'DELAYED';

function tellOf(world: World, validation: Transaction, cep: Cep, tell: Tell): void {
  note(world, validation, cep);
  const idMsg = world.choices.cepSharesMessageId ? cep.messageId : world.ids.uuid('message');
  const message = cepMessage(world, validation, idMsg);
  if (message !== undefined) tell(message);
}

/** The attempts that find the receipt in a state that it has already are no step of its trail. */
function note({ clock }: World, { trail }: Transaction, cep: Cep): void {
  const status = shownStatus(cep);
  if (trail.findLast(({ of }) => of === 'receipt')?.status === status) return;
  trail.push({ at: clock.now(), of: 'receipt', status });
}

function issuedAfterSeconds(world: World, validation: Transaction, { wish }: Cep): number {
  const { destination } = validation;
  const magic = magicOf(validation);
  if (wish === 'never' || validation.status === 'REFUNDED') return Number.POSITIVE_INFINITY;
  if (wish === 'late') return ATTEMPTS[LATE_ATTEMPT - 1] ?? 0;
  // A transfer that has not arrived has no receipt.
  if (magic === 'failed' || magic === 'stuck' || says(destination, 'no receipt'))
    return Number.POSITIVE_INFINITY;
  if (says(destination, 'late receipt')) return ATTEMPTS[LATE_ATTEMPT - 1] ?? 0;
  const settled = magic === 'late' ? settlementSeconds(world, magic) : 0;
  return Math.max(settled, world.choices.cepIssuedAfterSeconds);
}

/** Who owns the account of a destination that says "Other holder". */
const OTHER_HOLDER = { name: 'FERNANDO LUGO ARRIAGA', rfc: 'LUAF790430KX2' };

function complete(world: World, validation: Transaction, cep: Cep): void {
  const { destination } = validation;
  cep.status = 'COMPLETED';
  cep.processedAt = world.clock.now();
  const isOther = cep.wish === 'other-holder' || says(destination, 'other holder');
  const { name, rfc } = isOther
    ? OTHER_HOLDER
    : { name: destination.detail.holderName.toUpperCase(), rfc: destination.rfc };
  cep.beneficiaryName = name;
  cep.beneficiaryRfc = rfc;
  validation.updatedAt = cep.processedAt;
}
