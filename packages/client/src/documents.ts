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

/** Finds the first field of a mutation besides `__typename` in a text. */
const FIELD = /\bmutation\b[^{]*\{[\s,]*(?:(?:\w+\s*:\s*)?__typename[\s,]+)*(?:\w+\s*:\s*)?(\w+)/;

/**
 * Returns the names that a store may have for a mutation, from its text, its parsed form, or the form of relay-compiler. Its field comes first.
 * Version 0.2.0 read comments too, took `__typename` for a field, and `mutation` where it found none.
 */
export function namesOf(document: string | object): readonly string[] {
  // Its members show which form it is.
  const { definitions, params } = Object(document) as Compiled;
  const text = params?.text ?? String(document);
  const names = definitions
    ? [
        definitions
          .find(({ operation }) => operation === 'mutation')
          ?.selectionSet.selections.find(({ name }) => name?.value !== '__typename')?.name?.value,
      ]
    : [text.replace(/".*?"|#.*/g, ''), text].map((each) => FIELD.exec(each)?.[1]);
  if (!names[0]) throw new Error('No mutation, or its field is in a fragment. Nothing was sent.');
  return [...(names as string[]), 'mutation', '__typename'];
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
