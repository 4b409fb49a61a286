import { fieldIn, type TypedDocument, typed } from './source.ts';

/** The documents that this package sends on its own. documents.graphql lists them for TRUSTED_DOCUMENTS. */

export const EVENT_CURSOR: TypedDocument<
  { readonly eventCursor: string },
  Record<string, never>
> = typed(`query PasarelaEventCursor {
  eventCursor
}`);

export interface Missed {
  readonly events: {
    readonly nodes: readonly { readonly cursor: string }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor?: string | null };
  } | null;
}

export interface MissedVariables {
  readonly after: string;
  readonly types: readonly string[] | null;
  readonly ownerId: string | null;
  readonly clabe: string | null;
}

/** Asks for events since a cursor, to know how far behind a feed is. */
export const MISSED: TypedDocument<Missed, MissedVariables> =
  /* @__PURE__ */ typed(`query PasarelaMissed($after: Cursor, $types: [EventType!], $ownerId: ID, $clabe: Clabe) {
  events(after: $after, first: 100, types: $types, ownerId: $ownerId, clabe: $clabe) {
    nodes {
      cursor
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}`);

export interface PaymentLook {
  readonly payment: { readonly state: string } | null;
}

/** Asks what became of a payment. */
export const PAYMENT: TypedDocument<PaymentLook, { readonly idempotencyKey: string }> =
  /* @__PURE__ */ typed(`query PasarelaPayment($idempotencyKey: String!) {
  payment(idempotencyKey: $idempotencyKey) {
    state
  }
}`);

/** Returns the first field of a mutation besides `__typename`, from its text, its parsed form, or the form of relay-compiler. */
export function mutationField(document: string | object): string | undefined {
  // Its members show which form it is.
  const { definitions, params } = document as Compiled;
  if (definitions === undefined) {
    return /\bmutation\b[^{]*\{[\s,]*(?:(?:\w+\s*:\s*)?__typename[\s,]+)*(?:\w+\s*:\s*)?(\w+)/.exec(
      params?.text ?? String(document),
    )?.[1];
  }
  return definitions
    .find(({ operation }) => operation === 'mutation')
    ?.selectionSet.selections.find(({ name }) => name?.value !== '__typename')?.name?.value;
}

interface Compiled {
  readonly definitions?: readonly {
    readonly operation?: string;
    readonly selectionSet: {
      readonly selections: readonly { readonly name?: { readonly value: string } }[];
    };
  }[];
  readonly params?: { readonly text?: string | null };
}

/** Returns the one field of a subscription's data, besides `__typename`. */
export const fieldOf = <Data>(data: Data): FieldOf<Data> => fieldIn(data as object)[1] as FieldOf<Data>;

export type FieldOf<Data> = Exclude<Data[Exclude<keyof Data, '__typename'>], null | undefined>;
