/** How many payments have been recorded as sent. The count goes on in another `epoch` once an operator lets payments go on. */
export interface Mark {
  readonly epoch: number;
  readonly sent: number;
}

/** Whether one was taken before another. */
export const isBehind = (one: Mark, other: Mark): boolean =>
  one.epoch < other.epoch || (one.epoch === other.epoch && one.sent < other.sent);
