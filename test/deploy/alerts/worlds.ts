import { BALANCES, UNREAD_BALANCES } from './balances.ts';
import { EVENTS } from './events.ts';
import { KEYS } from './keys.ts';
import { PAYMENTS } from './payments.ts';
import { PROCESS } from './process.ts';
import { QUIET } from './quiet.ts';
import { RECEIPTS } from './receipts.ts';
import { SERVICE } from './service.ts';
import type { World } from './world.ts';

/** Every fault that causes an alert, by where it is caused. */
export const WORLDS: readonly World[] = [
  PROCESS,
  EVENTS,
  PAYMENTS,
  BALANCES,
  UNREAD_BALANCES,
  RECEIPTS,
  SERVICE,
  KEYS,
  QUIET,
];
