/** A digit or more, and a space. */
const PREFIX = /^\d+ /;
/** The beginning of a message of graphql-ws that is one of an operation, up to the id as JSON. */
const MESSAGE = /^\{"id":("(?:[^"\\]|\\.)*")/;

/**
 * Returns the id by which graphql-ws knows an operation. A client may use an id again as soon as it has completed the operation that had
 * it, which may not have ended by then. If graphql-ws knew both by one id, it would send the end of the earlier one to the reader of the
 * later one, and drop the answer of that. So once a socket has left an operation, the ids of those that begin have a prefix.
 *
 * @param left how many operations the socket's client has completed before they had ended.
 */
export const innerId = (id: string, left: number): string =>
  left === 0 && !PREFIX.test(id) ? id : `${left} ${id}`;

/** Returns the client's id of an operation. */
export const clientsId = (inner: string): string => inner.replace(PREFIX, '');

/**
 * Returns a message of graphql-ws with the client's id; undefined for one of an operation that is not open any more.
 *
 * @param isOpen whether the operation of an inner id is open.
 */
export function forClient(message: string, isOpen: (inner: string) => boolean): string | undefined {
  const [head, quoted] = MESSAGE.exec(message) ?? [];
  if (head === undefined || quoted === undefined) return message;
  const inner: string = JSON.parse(quoted);
  if (!isOpen(inner)) return undefined;
  const id = clientsId(inner);
  return id === inner ? message : `{"id":${JSON.stringify(id)}${message.slice(head.length)}`;
}
