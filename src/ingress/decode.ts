import { hash } from 'node:crypto';
import { z } from 'zod';
import { toMessageAmount } from '../common/amounts.ts';
import { EVENT_TYPES, type EventType } from '../events/log.ts';
import type { QuarantineReason } from '../events/quarantine.ts';
import { contentsDigest } from './canonical-digest.ts';
import { ExactNumber, parseExactly } from './json.ts';

/** A delivery with everything that its type needs (docs/upstream-api.md, "Events"). Unknown members are allowed. */
export interface Delivery {
  /** The provider's message id; undefined if there is none. */
  readonly messageId: string | undefined;
  /** Two deliveries with the same identity are one message; undefined if every delivery is one of its own. */
  readonly identity: string | undefined;
  /** Digest of the contents, as parsed. */
  readonly contents: string;
  /** The JSON text, whole. */
  readonly text: string;
  /** An SPEI credit: the one message whose answer moves money. */
  readonly isSpeiCredit: boolean;
  /** The transaction that a MONEY_IN names; undefined for the other types. */
  readonly transactionId?: string;
  /** The owner and the account of a credit; undefined if the message does not say. */
  readonly credited?: { readonly ownerId: string; readonly account: string } | undefined;
}

/** Longer than any regular identity: a UUID and a digest take 101 characters. */
const LONGEST_IDENTITY = 256;

export type Decoded = { readonly delivery: Delivery } | { readonly problem: QuarantineReason };

const filled = z.string().trim().min(1);
/** An id. The service writes `None` for what is absent (docs/upstream-api.md, "Conventions"): as an id, it would make one message of several. */
const present = z.union([filled.refine((text) => text !== 'None'), z.number(), z.instanceof(ExactNumber)]);

/** An unreadable amount would be kept, and shown, for ever. */
const isAmount = (value: unknown): boolean => toMessageAmount(value) !== undefined;

const MoneyIn = z.object({
  id_msg: z.unknown().optional(),
  body: z.object({ id: present, amount: z.unknown().refine(isAmount), sub_category: z.unknown().optional() }),
});

const Cep = z.object({
  client_id: z.string(),
  payload: z.object({ id_msg: z.unknown().optional(), body: z.object({ status: filled }) }),
});

const Identified = z.object({ id_msg: present });

/**
 * Reads the body of a delivery.
 *
 * @param clientId the client that the address names; a CEP wrapper must name the same
 */
export function decode(type: EventType, clientId: string, bytes: Uint8Array): Decoded {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    value = parseExactly(text);
  } catch {
    return { problem: 'unreadable' };
  }
  if (isMisnamed(type, value)) return { problem: 'misnamed' };
  const common = { text, isSpeiCredit: false };
  switch (type) {
    case 'MONEY_IN': {
      const envelope = MoneyIn.safeParse(value);
      if (!envelope.success) return { problem: 'incomplete' };
      const { id_msg, body } = envelope.data;
      const messageId = idOf(id_msg);
      return {
        delivery: {
          ...common,
          messageId,
          // Without a message id the transaction identifies the credit, which is decided on once.
          identity: identityOf(messageId ?? `transaction:${body.id}`),
          contents: contentsDigest(member(value, 'body')),
          isSpeiCredit: body.sub_category === 'SPEI_CREDIT',
          transactionId: body.id.toString(),
          credited: creditedBy(member(value, 'body')),
        },
      };
    }
    case 'CEP': {
      const wrapper = Cep.safeParse(value);
      if (!wrapper.success) return { problem: 'incomplete' };
      if (wrapper.data.client_id.toLowerCase() !== clientId.toLowerCase()) {
        return { problem: 'foreign-client' };
      }
      const messageId = idOf(wrapper.data.payload.id_msg);
      const contents = contentsDigest(member(member(value, 'payload'), 'body'));
      return { delivery: { ...common, messageId, identity: join(messageId, contents), contents } };
    }
    case 'STATUS_UPDATE': {
      const messageId = Identified.safeParse(value).data?.id_msg.toString();
      const whole = contentsDigest(value);
      return { delivery: { ...common, messageId, identity: join(messageId, whole), contents: whole } };
    }
  }
}

/** The messages whose names the service documents (docs/upstream-api.md, "Events"). */
const NAMED: readonly unknown[] = EVENT_TYPES.filter((type) => type !== 'STATUS_UPDATE');

/**
 * True if a message's own type contradicts its address. A message without a name contradicts nothing. The name of a
 * STATUS_UPDATE is not documented, so it may have any name but those of the other types.
 */
function isMisnamed(type: EventType, value: unknown): boolean {
  const named = type === 'CEP' ? member(value, 'payload') : value;
  return [member(named, 'msg_name'), member(value, 'webhook_type')].some((name) => {
    if (name === undefined || name === null) return false;
    return type === 'STATUS_UPDATE' ? NAMED.includes(name) : name !== type;
  });
}

function idOf(value: unknown): string | undefined {
  return present.safeParse(value).data?.toString();
}

/**
 * Returns the identity to keep. A long one, which the sender may have chosen, becomes its digest, because it is remembered
 * for days.
 */
function identityOf(text: string): string {
  return text.length <= LONGEST_IDENTITY ? text : `sha256:${hash('sha256', text, 'hex')}`;
}

function join(messageId: string | undefined, contents: string): string | undefined {
  return messageId === undefined ? undefined : identityOf(`${messageId}:${contents}`);
}

/** Returns the member as it was parsed, because the schema's output has only the members that it names. */
function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined;
}

function creditedBy(body: unknown): Delivery['credited'] {
  const [ownerId, account] = [member(body, 'owner_id'), member(body, 'beneficiary_account')];
  return typeof ownerId === 'string' && typeof account === 'string' ? { ownerId, account } : undefined;
}
