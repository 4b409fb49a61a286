/**
 * Puts a text on the clipboard.
 *
 * @returns false where the browser does not allow it: only pages of https and of this machine may write there.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    // Other pages have no clipboard at all.
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
