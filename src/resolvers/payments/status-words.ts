/*
 * What a status of a transaction says, by its words in English and Spanish: the list of statuses is not documented (docs/assumptions.md,
 * "refused statuses").
 */
const NOT_PAID = /REJECT|FAIL|CANCEL|DECLIN|DENIED|REFUSED|ERROR|INVALID|EXPIRED|RECHAZ|FALLID/i;
const CAME_BACK = /REFUNDED|REVERSED|RETURNED|DEVUEL/i;

/** Whether a status says that nothing has been, or will be, paid. */
export const saysNotPaid = (status: string): boolean => NOT_PAID.test(status);

/**
 * Whether a status says that what was paid has come back. The service has taken such a payment, so that a transaction which is read so is
 * evidence of it. The answer to an order is the service's first one, at which nothing can have come back yet: one that says so is not believed.
 */
export const saysCameBack = (status: string): boolean => CAME_BACK.test(status);
