import { builder, readOnce } from './builder.ts';

/** An amount and its currency. Whatever carries the two under these names, as transactions do, is one. */
export const MoneyType = builder
  .objectRef<{ readonly amount: string; readonly currency: string }>('Money')
  .implement({
    extensions: readOnce,
    description: 'An amount of money, exact to the cent.',
    fields: (t) => ({
      amount: t.expose('amount', {
        type: 'MoneyAmount',
        nullable: false,
        description: 'Pesos with two decimals, as a string: `"1250.00"`.',
      }),
      currency: t.expose('currency', {
        type: 'CurrencyCode',
        nullable: false,
        description: 'Currency of the amount; `MXN` is the only one that the service moves.',
      }),
    }),
  });
