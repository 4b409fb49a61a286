import {
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLResolveInfo,
  GraphQLSkipDirective,
  getDirectiveValues,
  isAbstractType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import { idKey, isUuid } from '../upstream/call/path.ts';
import { Client } from './client.ts';
import { BadInputError } from './errors.ts';
import { argumentId, type IdForm } from './ids.ts';
import { paymentById } from './payments/payment-list.ts';

/** An object with an id of its own. */
export interface Node {
  readonly id: string;
}

interface Noun {
  readonly idForm: IdForm;
  find(id: string, context: Context): MaybePromise<Node | null>;
}

/** The nouns, in the order in which they are looked for: what costs no REST call, or a shared one, comes first. */
const NOUNS = {
  Client: {
    idForm: 'uuid',
    find: (id, { identity: { caller } }) =>
      idKey(caller.clientId) === idKey(id) ? new Client(caller.clientId) : null,
  },
  Payment: {
    idForm: 'id',
    find: (id, context) =>
      context.identity.caller.scopes.has('payments:read') ? paymentById(id, context) : null,
  },
  Bank: { idForm: 'uuid', find: (id, { reads }) => reads.session.banks.find('id', id) },
  Customer: { idForm: 'uuid', find: (id, { reads }) => reads.session.customers.find('id', id) },
  Account: { idForm: 'uuid', find: (id, { reads }) => reads.session.accounts.find('id', id) },
  Instrument: { idForm: 'id', find: (id, { reads }) => reads.session.instruments.find('id', id) },
  Transaction: { idForm: 'uuid', find: (id, { reads }) => reads.session.transactions.get(id) },
  Webhook: { idForm: 'id', find: (id, { reads }) => reads.session.webhooks.find('id', id) },
} as const satisfies Readonly<Record<string, Noun>>;

export type NodeTypeName = keyof typeof NOUNS;

const NAMES = Object.keys(NOUNS).filter(isNodeTypeName);

function isNodeTypeName(name: string): name is NodeTypeName {
  return Object.hasOwn(NOUNS, name);
}

/** What of each object was found by {@link node}: the upstream's objects do not say what they are. */
const typeNames = new WeakMap<Node, NodeTypeName>();

/** The type of an object that {@link node} has found. */
export const nodeTypeName = (found: Node): NodeTypeName | undefined => typeNames.get(found);

/**
 * The object of an id, whatever it is; null where the caller has none of this id. The ids do not say what they name, so the
 * type conditions of the selection do: `node(id: …) { ... on Customer { name } }` looks for a customer alone. Without a
 * condition all nouns are looked for, one after the other.
 *
 * @throws BadInputError for an id that none of these nouns can have.
 * @throws UpstreamError where nothing was found, and a look-up had failed.
 */
export async function node(id: string, context: Context, info: GraphQLResolveInfo): Promise<Node | null> {
  const wanted = conditionsOf(info);
  const names = wanted.size === 0 ? NAMES : NAMES.filter((name) => wanted.has(name));
  argumentId('id', names.every((name) => NOUNS[name].idForm === 'uuid') ? 'uuid' : 'id', id);
  const failures: unknown[] = [];
  for (const name of names) {
    const { idForm, find } = NOUNS[name];
    if (idForm === 'uuid' && !isUuid(id)) continue;
    try {
      const found = await find(id, context);
      if (found === null) continue;
      typeNames.set(found, name);
      return found;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return null;
}

/** How many nodes may be asked for at once. */
const MOST_NODES = 100;

/**
 * As {@link node}, for each of several ids, in their order. One that fails is null, with an error in its place.
 *
 * @throws BadInputError for more than 100.
 */
export function nodes(
  ids: readonly string[],
  context: Context,
  info: GraphQLResolveInfo,
): readonly Promise<Node | null>[] {
  if (ids.length > MOST_NODES) {
    throw new BadInputError(`Argument "ids" must have at most ${MOST_NODES} of them; it has ${ids.length}.`);
  }
  return ids.map((id) => node(id, context, info));
}

/** The nouns that a selection has conditions on. A condition within another narrows it. */
function conditionsOf({
  fieldNodes,
  fragments,
  schema,
  variableValues,
}: GraphQLResolveInfo): ReadonlySet<NodeTypeName> {
  const found = new Set<NodeTypeName>();
  const seen = new Set<FragmentDefinitionNode>();
  const isIncluded = (selection: SelectionNode): boolean =>
    getDirectiveValues(GraphQLSkipDirective, selection, variableValues)?.['if'] !== true &&
    getDirectiveValues(GraphQLIncludeDirective, selection, variableValues)?.['if'] !== false;
  /** Every noun that a condition names; undefined where it names all. */
  const namesOf = (condition: string | undefined): readonly NodeTypeName[] | undefined => {
    if (condition === undefined || condition === 'Node') return undefined;
    if (isNodeTypeName(condition)) return [condition];
    const type = schema.getType(condition);
    return isAbstractType(type)
      ? schema.getPossibleTypes(type).flatMap(({ name }) => (isNodeTypeName(name) ? [name] : []))
      : [];
  };
  const look = ({ selections }: SelectionSetNode): void => {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD || !isIncluded(selection)) continue;
      const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments[selection.name.value];
      if (fragment === undefined) continue;
      if (fragment.kind === Kind.FRAGMENT_DEFINITION) {
        if (seen.has(fragment)) continue;
        seen.add(fragment);
      }
      const names = namesOf(fragment.typeCondition?.name.value);
      if (names === undefined) look(fragment.selectionSet);
      else for (const name of names) found.add(name);
    }
  };
  for (const { selectionSet } of fieldNodes) if (selectionSet !== undefined) look(selectionSet);
  return found;
}
