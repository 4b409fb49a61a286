/** Letters without accents and case. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();

/** Whether a text contains what somebody has typed, whatever its accents and case. */
export const contains = (text: string, typed: string): boolean => plain(text).includes(plain(typed.trim()));
