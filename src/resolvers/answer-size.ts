import {
  type GraphQLNamedType,
  type GraphQLResolveInfo,
  getNamedType,
  isInterfaceType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { Budget } from '../operation/budget.ts';
import { TooManyItemsError } from './errors.ts';

/** A page of any list. */
interface AnyPage {
  readonly nodes?: readonly unknown[];
  readonly edges?: readonly unknown[];
}

/** What of an operation's budget pages are counted by. */
type AnswerBudget = Pick<Budget, 'countItems' | 'maxItems'>;

/** What of a field's `info` says which items it selects. */
export type SelectionInfo = Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments' | 'returnType' | 'schema'>;

/** Types of which a field beneath an item may read one by itself, where lists and the catalog of banks bring all others together. */
const READ_SINGLY: ReadonlySet<string> = new Set(['Transaction', 'Instrument', 'Payment']);

/**
 * Counts a page that has been read: its items, and for each of them the objects that may be read for it alone, before they are. The cost
 * of the document only supposes a number for a page without a size.
 *
 * @throws TooManyItemsError when the answer holds more than it may.
 */
export function countPage<T extends AnyPage>(page: T, info: SelectionInfo, budget: AnswerBudget): T {
  const items = (page.nodes ?? page.edges ?? []).length;
  if (budget.countItems(items * (1 + readsOfItem(info))) > budget.maxItems)
    throw new TooManyItemsError(budget.maxItems);
  return page;
}

/**
 * Returns how many objects may be read for each item of a connection alone. It leaves out those for the items of a page within the item:
 * {@link countPage} counts them once that page has been read.
 */
export const readsOfItem = (info: SelectionInfo): number =>
  info.fieldNodes.reduce((sum, { selectionSet }) => {
    return sum + readsIn(selectionSet, getNamedType(info.returnType), info).ofItem;
  }, 0);

/** Objects that are read singly for a selection once, and for each item of the page that it is of. */
interface Reads {
  readonly once: number;
  readonly ofItem: number;
}

const NOTHING: Reads = { once: 0, ofItem: 0 };

const known = new WeakMap<SelectionSetNode, Reads>();

/** A selection is counted once in the life of its document, so that fragments within fragments cost little. */
function readsIn(
  set: SelectionSetNode | undefined,
  type: GraphQLNamedType | undefined,
  info: Pick<SelectionInfo, 'fragments' | 'schema'>,
): Reads {
  if (set === undefined) return NOTHING;
  const before = known.get(set);
  if (before !== undefined) return before;
  let [once, ofItem] = [0, 0];
  for (const selection of set.selections) {
    if (selection.kind === Kind.FIELD) {
      const { name, selectionSet } = selection;
      const field = isObjectType(type) || isInterfaceType(type) ? type.getFields()[name.value] : undefined;
      if (field === undefined || selectionSet === undefined) continue;
      const inner = getNamedType(field.type);
      const isItem = name.value === 'nodes' || name.value === 'edges' || name.value === 'node';
      const reads =
        readsIn(selectionSet, inner, info).once + (!isItem && READ_SINGLY.has(inner.name) ? 1 : 0);
      if (name.value === 'nodes' || name.value === 'edges') ofItem += reads;
      else once += reads;
      continue;
    }
    const spread = selection.kind === Kind.INLINE_FRAGMENT ? selection : info.fragments[selection.name.value];
    const condition = spread?.typeCondition?.name.value;
    const on = condition === undefined ? type : info.schema.getType(condition);
    const inner = readsIn(spread?.selectionSet, on, info);
    once += inner.once;
    ofItem += inner.ofItem;
  }
  const reads = { once, ofItem };
  known.set(set, reads);
  return reads;
}
