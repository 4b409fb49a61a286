/**
 * The client, and who has signed in with the token: its `sub` and `customer_id`. In service mode a payment's key belongs to
 * them, so that the same key under another one pays again. A token that is no JWT, or whose `sub` is the client, names no person.
 */
export function ownerOf(token: string, clientId: string): string {
  try {
    const [, payload = ''] = token.split('.');
    const { sub, customer_id } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    if (typeof sub !== 'string' || sub === clientId) return clientId;
    return [clientId, sub, customer_id ?? ''].map(encodeURIComponent).join('/');
  } catch {
    return clientId;
  }
}
