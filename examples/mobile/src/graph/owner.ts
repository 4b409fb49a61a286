/**
 * The client, and who has signed in with the token: its `sub` and `customer_id`. In service mode a payment's key belongs to
 * them, so that the same key under another one pays again. A token that is no JWT, or whose `sub` is the client, names no person;
 * one that is narrowed to a customer still names the customer.
 */
export function ownerOf(token: string, clientId: string): string {
  try {
    const [, payload = ''] = token.split('.');
    const { sub, customer_id } = JSON.parse(atob(payload.replaceAll('-', '+').replaceAll('_', '/')));
    const person = typeof sub === 'string' && sub !== clientId ? sub : '';
    if (person === '' && !customer_id) return clientId;
    return [clientId, person, customer_id ?? ''].map(encodeURIComponent).join('/');
  } catch {
    return clientId;
  }
}
