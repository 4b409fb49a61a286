/** What a browser keeps of a page that it allows no storage: gone with the page. @type {Map<string, string>} */
const here = new Map();

/** @param {string} key */
export function kept(key) {
  try {
    // The look-up alone throws where it is blocked.
    return localStorage.getItem(key);
  } catch {
    return here.get(key) ?? null;
  }
}

/** @param {string} key @param {string} value @returns {boolean} whether a page finds it once it is loaded again */
export function keep(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    here.set(key, value);
    return false;
  }
}
