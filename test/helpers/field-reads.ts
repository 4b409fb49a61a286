import { type GraphQLField, type GraphQLResolveInfo, isRequiredArgument } from 'graphql';

const ID = '11111111-2222-4333-8444-555555555555';

/** An object each part of which is such an object, and a function that returns one. It notes what is asked for. */
function noting(path: string, note: (path: string) => void): object {
  return new Proxy(() => undefined, {
    get(_target, name) {
      // It is no promise, and goes through as empty.
      if (name === Symbol.iterator) return () => [].values();
      if (typeof name === 'symbol' || name === 'then') return undefined;
      if (name === 'toString') return () => path;
      const inner = `${path}.${name}`;
      note(inner);
      return noting(inner, note);
    },
    apply: () => noting(`${path}()`, note),
  });
}

/** What came of resolving a field. */
interface Resolved {
  /** The parts of the operation's context that the resolver has asked for, up to three names each, such as `reads.session.clientId`. */
  readonly reads: ReadonlySet<string>;
  /** What it has failed with. What finds nothing, or not what it looks for, may fail. */
  readonly failure: unknown;
}

/**
 * Resolves a field of an object each part of which is an id, over an operation that holds nothing. What the field would ask for
 * only once it has found something is not told.
 *
 * @param may which scopes the caller has.
 * @throws Error if a required argument has no value here: the resolver would throw before it reads, and nothing would be told.
 */
export async function resolveFor(
  field: GraphQLField<unknown, unknown>,
  may: (scope: string) => boolean,
): Promise<Resolved> {
  const parts = new Set<string>();
  const note = (path: string) => void parts.add(path.split('.').slice(0, 3).join('.'));
  const part = (name: string) => noting(name, note);
  const caller = { scopes: { has: may }, clientId: ID };
  const identity = { identify: () => caller, caller, apiKey: 'key', servesBootstrap: true, credential: 'x' };
  const context = { identity, reads: part('reads'), budget: part('budget'), services: part('services') };
  const parent = new Proxy(
    {},
    { get: (_target, name) => (typeof name === 'symbol' || name === 'then' ? undefined : ID) },
  );
  const given: Readonly<Record<string, unknown>> = {
    id: ID,
    by: { id: ID },
    ids: [ID],
    clientId: ID,
    transactionId: ID,
    idempotencyKey: ID,
    input: parent,
  };
  for (const argument of field.args) {
    if (isRequiredArgument(argument) && given[argument.name] === undefined) {
      throw new Error(
        `${field.name} requires ${argument.name}: give it a value in test/helpers/field-reads.ts`,
      );
    }
  }
  const args = Object.fromEntries(field.args.map(({ name }) => [name, given[name]]));
  try {
    await field.resolve?.(parent, args, context, part('info') as unknown as GraphQLResolveInfo);
    return { reads: parts, failure: undefined };
  } catch (failure) {
    return { reads: parts, failure };
  }
}

/** Returns what a field reads, for a caller who has all scopes if nothing else is said. */
export const readsOf = async (
  field: GraphQLField<unknown, unknown>,
  may: (scope: string) => boolean = () => true,
): Promise<ReadonlySet<string>> => (await resolveFor(field, may)).reads;
