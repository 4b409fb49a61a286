export { alternativeChoices, type Choices, defaultChoices } from './choices.ts';
export type { ClockView, Completed, RequestsView } from './control.ts';
export type { ReceiptWish } from './control-orders.ts';
export type {
  AccountView,
  ClientView,
  DeliveryView,
  InstrumentView,
  LedgerView,
  MovementView,
} from './control-views.ts';
export {
  type CreateOptions,
  type CreditOrder,
  createSandbox,
  type Failure,
  type RefundOrder,
  type Span,
  type TestSandbox,
} from './create.ts';
export type {
  Endpoint,
  RestAnswers,
  RestBankPage,
  RestBodies,
  RestItemPage,
  RestPage,
} from './endpoints.ts';
export type { FaultView } from './faults.ts';
export type { WebhookOrder } from './operations/webhooks.ts';
export { isOwnHost } from './own-hosts.ts';
export type { Outcome } from './pending.ts';
export type * from './rest.ts';
export { type Sandbox, type SandboxOptions, startSandbox } from './start.ts';
