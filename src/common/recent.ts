/**
 * Makes an answer serve for a moment: those who ask meanwhile, or while it is being found out, share it.
 *
 * @param find finds it out. A failure is shared like any other answer.
 * @param forMs how long it serves from when it was asked for, in milliseconds.
 * @param now milliseconds of a monotonic clock.
 */
export function recent<T>(find: () => Promise<T>, forMs: number, now: () => number): () => Promise<T> {
  let last: { readonly answer: Promise<T>; readonly at: number; pending: boolean } | undefined;
  return () => {
    if (last !== undefined && (last.pending || now() - last.at < forMs)) return last.answer;
    const asked = { answer: find(), at: now(), pending: true };
    last = asked;
    const settle = (): void => {
      asked.pending = false;
    };
    asked.answer.then(settle, settle);
    return asked.answer;
  };
}
